"""Pretraining: text as tokens on disk, masking, segment pairs, mixing of corpora, losses, initial weights."""
