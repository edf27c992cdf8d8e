"""Datasets: examples, readers by format, the registry, metrics."""
