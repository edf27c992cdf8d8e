"""Made-up data for scale smoke: its language, and a writer for each format."""
