"""The research floor: other people's methods, benchmarks, presets, studies, figures, the paper.

Nothing outside imports it: `pdcl.laboratory` is the one door.
"""
