"""Raw files to clean text: readers, the papers' rules, selection, texts found again elsewhere."""
