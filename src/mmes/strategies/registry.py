"""The strategies by name."""

from __future__ import annotations

from typing import Any

from mmes.options import suggestion
from mmes.strategies.ask_tell import AskTell
from mmes.strategies.mmes import MMES

STRATEGIES: dict[str, type[AskTell]] = {strategy.name: strategy for strategy in (MMES,)}


def get_strategy(strategy: Any) -> type[AskTell]:
    """Return the strategy class of that name; a class is returned as it is."""
    if isinstance(strategy, type) and issubclass(strategy, AskTell):
        return strategy
    if not isinstance(strategy, str):
        raise TypeError(
            "strategy must be a name or a strategy class, "
            f"not {strategy!r} (a {type(strategy).__name__})"
        )
    if strategy not in STRATEGIES:
        raise ValueError(f"there is no strategy {strategy!r}{suggestion(strategy, STRATEGIES)}")
    return STRATEGIES[strategy]
