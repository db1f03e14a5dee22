"""What pdcl raises on purpose. The command line shows these as one message, without a traceback."""

from __future__ import annotations

from pathlib import Path

from pdcl.printable import printable


class PdclError(Exception):
    """Something the user can act on: the message names the value, the place and the way out.

    It is one line, whatever the names in it hold.
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class UsageError(PdclError, ValueError):
    """What was asked for makes no sense: a wrong option, value, shape or name."""


class RecordError(PdclError):
    """A record can't be written or read. `path` is where."""

    def __init__(self, message: str, path: str | Path) -> None:
        super().__init__(message)
        self.path = Path(path)

    def __reduce__(self) -> tuple[type[RecordError], tuple[str, Path]]:
        # Exceptions cross process borders in studies; the default pickling forgets the second argument.
        return type(self), (str(self), self.path)


class RunFinished(RecordError):
    """The same run was made before, to its end: there is nothing to do but to show it."""


class RunUnfinished(RecordError):
    """The same run was begun before and has no result yet."""


class StateError(RecordError):
    """A saved state can't be written, read or used. What was saved before is untouched."""


class Damaged(StateError):
    """A saved state is provably not what was written: a part is missing, cut or changed."""


class Locked(RecordError):
    """Another process writes here."""


class WorkFailed(PdclError):
    """Work that an engine carried failed in its worker; the message ends with the worker's traceback."""

    def __str__(self) -> str:
        return printable(Exception.__str__(self), lines=True)


class RanksDisagree(PdclError):
    """Processes of one data-parallel training hold different states."""


class Interrupted(PdclError):
    """A signal asked the run to stop; its state is saved. `code` is what a shell expects of such a process."""

    def __init__(self, message: str, code: int = 143) -> None:
        super().__init__(message)
        self.code = code


class LimitBroken(UserWarning):
    """A warning: a stated limit is broken, or a new task was not learned, with the stated confidence."""


class LearningWarning(UserWarning):
    """A warning: what was asked of a task was done in part, or shows less than it seems to."""


class Diverged(PdclError):
    """A loss became NaN or infinite. The state before that step is kept."""

    def at(self, place: str) -> Diverged:
        """The same, naming the task and step where it happened."""
        return Diverged(f"{place}: {self}")
