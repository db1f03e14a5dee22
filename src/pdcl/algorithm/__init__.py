"""Algorithm 1 and its mathematics, on tensors alone: no network, no memory, no files."""
