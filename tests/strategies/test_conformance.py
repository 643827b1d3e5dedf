"""Every strategy passes the public conformance suite; and the suite catches strategies that do not."""

from __future__ import annotations

import pytest

from mmes.strategies import STRATEGIES, AskTell
from mmes.testing.strategies import STRATEGY_CHECKS, Check


@pytest.mark.parametrize("check", STRATEGY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", list(STRATEGIES))
def test_conformance(name: str, check: Check) -> None:
    check(STRATEGIES[name])
