"""Promises: what a stated limit allows, what was measured, and whether it was kept, with exact confidence bounds.

Numbers and counts alone: nothing here knows networks, memory or files. A limit has a unit, an error rate or a loss, and
is absolute ("5%", 0.05) or compares with what the same samples gave before ("+2pt": two points more; "1.1x").
"""
