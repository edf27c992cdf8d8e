"""The made-up data of smoke: all of it, its language, and each format."""
