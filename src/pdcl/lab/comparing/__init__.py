"""Runs beside each other: groups over seeds, paired differences, and these as tables."""

from pdcl.lab.comparing.aggregate import Comparison, Group, compare, group

__all__ = ["Comparison", "Group", "compare", "group"]
