"""The one training loop, its optimizers and checkpoints."""
