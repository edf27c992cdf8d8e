"""Pretraining: text as tokens on disk, what is masked, pairs and mixing, losses, starts."""
