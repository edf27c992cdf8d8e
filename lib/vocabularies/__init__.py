"""Vocabularies: training and loading."""
