"""The gate: whether a model keeps its tolerances, with known confidence, and what loosening one would win.

The optimiser guarantees nothing for a non-convex network; a PASS is right with the stated confidence.
"""
