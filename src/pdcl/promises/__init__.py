"""Promises: what a stated limit allows, what was measured, and whether it was kept, with exact confidence bounds."""

from pdcl.promises.limit import Limit

__all__ = ["Limit"]
