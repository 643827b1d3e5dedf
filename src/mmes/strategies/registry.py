"""Every strategy by its name: what `minimize(strategy=...)` and the command line take."""

from __future__ import annotations

from mmes.options import suggestion
from mmes.strategies.ask_tell import AskTell
from mmes.strategies.mmes import MMES

_STRATEGIES: tuple[type[AskTell], ...] = (MMES,)


def strategy_names() -> list[str]:
    """Return the names of all strategies, MMES first."""
    return [strategy.name for strategy in _STRATEGIES]


def get_strategy(strategy: str | type[AskTell]) -> type[AskTell]:
    """Return the strategy of a name; a strategy itself (one of yours, say) is handed back.

    Parameters
    ----------
    strategy : str or type
        One of `strategy_names()`, or a subclass of `AskTell`. Upper and lower case and hyphens are not distinguished,
        and a trailing "-es" may be there or not: ``"sep-cma"``, ``"SepCMA"`` and ``"sep-CMA-ES"`` are the same.

    Raises
    ------
    ValueError
        If there is no strategy of that name; the message suggests the nearest.
    TypeError
        If it is neither a name nor a strategy.
    """
    if isinstance(strategy, type) and issubclass(strategy, AskTell):
        return strategy
    if not isinstance(strategy, str):
        raise TypeError(
            f"strategy must be a name or a subclass of AskTell, not {strategy!r} (a {type(strategy).__name__})"
        )
    table = {_plain(known.name): known for known in _STRATEGIES}
    plain = _plain(strategy)
    for spelling in (plain, plain + "es", plain.removesuffix("es")):
        if spelling in table:
            return table[spelling]
    known = {known.name: known for known in _STRATEGIES}
    raise ValueError(
        f"there is no strategy named {strategy!r}{suggestion(strategy.lower(), known)}"
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
