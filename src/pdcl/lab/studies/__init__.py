"""Studies: many runs from one file, over processes here or a cluster elsewhere.

```python
study = pdcl.lab.studies.load("first_look")
outcome = pdcl.lab.studies.execute(study, "runs/first_look", pdcl.lab.studies.LocalProcesses(2))
```
"""

from pdcl.lab.studies.engine import Ended, Engine, Job, Started
from pdcl.lab.studies.execution import Outcome, Planned, execute
from pdcl.lab.studies.local import LocalProcesses
from pdcl.lab.studies.parsing import load, shipped
from pdcl.lab.studies.spec import RunSpec
from pdcl.lab.studies.study import Study

__all__ = [
    "Ended", "Engine", "Job", "LocalProcesses", "Outcome", "Planned", "RunSpec", "Started", "Study", "execute", "load",
    "shipped",
]  # fmt: skip
