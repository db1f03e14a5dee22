"""`pdcl gate`: exit codes are its answer, so nothing but a verdict may end it with 0, 1 or 2.

0 PASS    1 FAIL    2 UNDECIDED    3 refused: a wrong option or file, no looks left    4 a defect    130 interrupted
"""

from __future__ import annotations

import sys
import traceback

REFUSED, BROKEN, INTERRUPTED = 3, 4, 130


def main(argv: list[str]) -> int:
    try:
        # Inside the guard, since an import may fail too.
        from pdcl.cli.gate_command import judge

        code = judge(argv)
        sys.stdout.flush()
        return code
    except SystemExit as stop:
        return 0 if stop.code in (None, 0) else REFUSED
    except KeyboardInterrupt:
        print("pdcl gate: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BaseException as error:
        return _failed(error)


def _failed(error: BaseException) -> int:
    from pdcl.errors import PdclError

    if isinstance(error, PdclError):
        print(f"pdcl gate: {error}", file=sys.stderr)
        return REFUSED
    traceback.print_exception(error)
    return BROKEN
