"""What every test stands on: one thread, and the same hypotheses on every machine."""

from __future__ import annotations

import torch
from hypothesis import settings

# Workers share the cores, and small tensors lose more to thread hand-over than they win.
torch.set_num_threads(1)

# Derandomised, a red test is red for everyone; `--hypothesis-profile=explore` looks further.
settings.register_profile("steady", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("steady")
