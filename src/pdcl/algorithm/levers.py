"""A rule of one's own that acts after each dual step, in every driver: on base weights, learning rates, batch sizes.

```python
@pdcl.register_rule("lever", "calm")
@dataclass(frozen=True)
class Calm(pdcl.Lever):
    def pull(self, core, moved): ...
```
"""

from __future__ import annotations

from typing import Any


class Lever:
    """`pull` is called after every dual step. core: the `pdcl.PrimalDual`; moved: duals, slacks and limits now."""

    def pull(self, core: Any, moved: Any) -> None:
        raise NotImplementedError
