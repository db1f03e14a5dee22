"""Fixed features: maps from inputs to vectors that are fitted without labels on the first task, then never change.

By the shape of the input (`catalog.feature_map`): random ReLU for vectors, whitened patches for images, patches of a
log spectrogram for signals, hashed n-grams for token numbers; or any frozen module.
"""
