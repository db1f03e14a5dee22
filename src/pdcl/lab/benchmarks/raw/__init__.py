"""Raw files of benchmarks: where they come from, downloads with hashes, archives, prepared tensors."""
