"""pdcl."""
