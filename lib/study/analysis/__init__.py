"""What the pages of results compute: cells, curves, claims, counts."""
