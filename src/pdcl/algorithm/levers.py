"""What else may act at each dual step, in every driver: the replayed batch, the base weight, a schedule of one's own.

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
