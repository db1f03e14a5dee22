"""Studies: many runs from one file, over processes here or a cluster elsewhere.

```python
study = pdcl.studies.load("first_look")
outcome = pdcl.studies.execute(study, "runs/first_look", pdcl.studies.LocalProcesses(2))
```
"""

from pdcl.studies.engine import Ended, Engine, Job, Started
from pdcl.studies.execution import Outcome, Planned, execute
from pdcl.studies.local import LocalProcesses
from pdcl.studies.parsing import load, shipped
from pdcl.studies.spec import RunSpec
from pdcl.studies.study import Study

__all__ = [
    "Ended",
    "Engine",
    "Job",
    "LocalProcesses",
    "Outcome",
    "Planned",
    "RunSpec",
    "Started",
    "Study",
    "execute",
    "load",
    "shipped",
]
