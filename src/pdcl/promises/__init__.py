"""Promises: what a stated limit allows, what was measured, and whether it was kept, with exact confidence bounds.

Numbers and counts alone: nothing here knows networks, memory or files. A limit has a unit, an error rate or a loss, and
is absolute ("5%", 0.05) or compares with what the same samples gave before ("+2pt": two points more; "1.1x").
"""

from pdcl.promises.limit import Limit
from pdcl.promises.paired import change_lower, change_upper
from pdcl.promises.promise import LimitBroken, Promise
from pdcl.promises.sample_sizes import samples_needed, samples_needed_for_mean, samples_needed_for_rate
from pdcl.promises.split import Split, split_errors
from pdcl.promises.table import Promises
from pdcl.promises.verdicts import Question, half_way, judge, judge_new, judge_task

__all__ = [
    "Limit",
    "LimitBroken",
    "Promise",
    "Promises",
    "Question",
    "Split",
    "change_lower",
    "change_upper",
    "half_way",
    "judge",
    "judge_new",
    "judge_task",
    "samples_needed",
    "samples_needed_for_mean",
    "samples_needed_for_rate",
    "split_errors",
]
