"""The methods, one per file, each readable beside its paper."""
