"""Write the table of docs/speed.md from the single runs of benchmarks/time_to_solution.py.

python tools/solution_times.py            # renew the page
python tools/solution_times.py --check    # 1 if the page is not up to date
"""

from __future__ import annotations

import sys
from pathlib import Path

from marked import write_or_check

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from time_to_solution import stored, table  # noqa: E402


def texts() -> dict[str, str]:
    """Return the table by its mark in the page."""
    return {"time to solution": table(stored())}


if __name__ == "__main__":
    sys.exit(write_or_check(ROOT / "docs" / "speed.md", texts))
