"""Encoders: their forward pass, heads, loading, FLOPs."""
