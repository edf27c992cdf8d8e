"""Fine-tuning: one encoder on one dataset, every seed."""
