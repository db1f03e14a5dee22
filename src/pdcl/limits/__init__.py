"""Limits as people write them, and as numbers: text to value and back."""
