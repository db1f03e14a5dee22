"""The paper's four streams, one file each."""
