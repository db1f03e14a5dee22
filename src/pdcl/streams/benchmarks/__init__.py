"""The paper's four streams and one of texts, one file each."""
