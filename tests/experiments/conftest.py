"""Make `pretended` importable here and, since spawn hands sys.path on, in worker processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HELPERS = Path(__file__).parent / "helpers"
if str(HELPERS) not in sys.path:
    sys.path.insert(0, str(HELPERS))


@pytest.fixture
def helpers() -> Path:
    return HELPERS


@pytest.fixture(autouse=True)
def forget_user_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every test have a mine.py of its own, as every process has in real life."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
