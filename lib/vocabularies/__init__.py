"""Vocabularies: trained and loaded."""
