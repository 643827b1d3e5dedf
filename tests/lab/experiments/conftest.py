"""What the tests of the experiments share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from paths import TESTS


@pytest.fixture
def helpers() -> Path:
    return TESTS / "helpers"


@pytest.fixture(autouse=True)
def forget_user_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every test have a mine.py of its own, as every process has in real life."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
