"""A rule of one's own that acts after each dual step, in every driver: on base weights, learning rates, batch sizes.

```python
@pdcl.register_rule("lever", "calm")
@dataclass(frozen=True)
class Calm(pdcl.Lever):
    def pull(self, core, moved): ...
```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Lever(ABC):
    """What happens after every dual step.

    A lever that remembers something says so by `state_dict` and `load_state_dict`: it is saved with the learner.
    """

    @abstractmethod
    def pull(self, core: Any, moved: Any) -> None:
        """Called after every dual step. core: the `pdcl.PrimalDual`; moved: duals, slacks and limits now."""

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, as tensors and JSON values."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
