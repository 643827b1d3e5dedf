"""The attacks of `tools/attack.py`."""

import sys
from pathlib import Path

# The features, their laws and the damage to files are those of the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))
