"""The training loop, its optimizers and checkpoints."""
