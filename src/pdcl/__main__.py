"""`python -m pdcl` is `pdcl`."""

import sys

from pdcl.cli import main

if __name__ == "__main__":
    sys.exit(main())
