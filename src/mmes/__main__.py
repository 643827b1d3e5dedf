"""``python -m mmes``: the command line without an installed script."""

import sys

from mmes.cli import main

if __name__ == "__main__":
    sys.exit(main())
