"""``python -m mmes.experiments reproduce|bench|report ...``."""

from __future__ import annotations

import sys

from mmes.experiments.commands import COMMANDS


def main() -> int:
    """Hand the arguments to the command that is named first."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in COMMANDS:
        print(f"usage: python -m mmes.experiments {{{','.join(COMMANDS)}}} ...", file=sys.stderr)
        return 2
    return COMMANDS[name](sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
