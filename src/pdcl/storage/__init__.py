"""States on disk: nested values as safetensors and JSON, never pickle; written whole or not at all; locked."""
