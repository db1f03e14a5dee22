"""The past: what is kept of it, in memory, in files, or as numbers of somebody else's samples."""
