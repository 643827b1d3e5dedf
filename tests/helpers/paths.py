"""Where the tests find what lies beside them in the repository."""

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
GOLDEN = TESTS / "golden"
