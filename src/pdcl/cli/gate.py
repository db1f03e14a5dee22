"""`pdcl gate`: exit codes are its answer, so nothing but a verdict may end it with 0, 1 or 2.

0 PASS    1 FAIL    2 UNDECIDED    3 refused: a wrong option or file, no looks left    4 a defect    130 interrupted
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

REFUSED, BROKEN, INTERRUPTED = 3, 4, 130


def main(argv: list[str]) -> int:
    def judge() -> int:
        # Inside the guard, since an import may fail too.
        from pdcl.cli.gate_command import judge

        return judge(argv)

    return guarded("gate", judge)


def guarded(verb: str, work: Callable[[], int]) -> int:
    """The exit code of `work`; any failure has a code that is no answer."""
    try:
        code = work()
        sys.stdout.flush()
        return code
    except SystemExit as stop:
        return 0 if stop.code in (None, 0) else REFUSED
    except BrokenPipeError:
        # Whoever read has seen enough; whoever dispatched this says so.
        raise
    except KeyboardInterrupt:
        print(f"pdcl {verb}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BaseException as error:
        return _failed(verb, error)


def _failed(verb: str, error: BaseException) -> int:
    from pdcl.errors import PdclError
    from pdcl.printable import printable

    if isinstance(error, PdclError):
        print(f"pdcl {verb}: {error}", file=sys.stderr)
        return REFUSED
    sys.stderr.write(printable("".join(traceback.format_exception(error)), lines=True))
    return BROKEN
