"""All strategies by name, as in `minimize(strategy=...)` and on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard, TypeVar

from mmes.base.loading import entry_points, is_location, load_object
from mmes.base.options import Option, suggestion
from mmes.strategies.cma import CMAES, ActiveCMA
from mmes.strategies.fast_cma import FastCMA
from mmes.strategies.isotropic_es import IsotropicES
from mmes.strategies.lm_cma import LMCMA
from mmes.strategies.lm_ma import LMMA
from mmes.strategies.mmes import MMES, AdaptiveMMES
from mmes.strategies.rm_es import R1ES, RmES
from mmes.strategies.sda_es import SDAES
from mmes.strategies.sep_cma import SepCMA
from mmes.strategies.shell.ask_tell import AskTell
from mmes.strategies.shell.optimizer import Optimizer

T = TypeVar("T")

REGISTERED = "mmes.strategies"
"""The group of entry points under which other packages, and the laboratory, name optimizers."""

STRATEGIES: dict[str, type[AskTell]] = {
    strategy.name: strategy
    for strategy in (
        MMES,
        AdaptiveMMES,
        CMAES,
        ActiveCMA,
        SepCMA,
        LMCMA,
        LMMA,
        RmES,
        R1ES,
        SDAES,
        FastCMA,
        IsotropicES,
    )
}


AUTO_LIMIT = 100
"""Up to this many variables ``"auto"`` chooses active CMA-ES, with its full covariance matrix."""


def automatic(n: int, manifold: bool = False, elsewhere: str = "") -> tuple[type[AskTell], str]:
    """Return the strategy that ``"auto"`` chooses, and why.

    Parameters
    ----------
    n : int
        Number of variables.
    manifold : bool
        Whether a manifold is searched.
    elsewhere : str
        Why CMA-ES, which uses numpy's matrices, cannot be used; empty if it can.
    """
    if manifold:
        return MMES, "it searches manifolds"
    if n > AUTO_LIMIT:
        return AdaptiveMMES, f"n = {n} is above {AUTO_LIMIT}"
    if elsewhere:
        return AdaptiveMMES, elsewhere
    return ActiveCMA, f"n = {n} is at most {AUTO_LIMIT}"


def is_auto(strategy: Any) -> bool:
    """Return whether the strategy is chosen by the number of variables."""
    return isinstance(strategy, str) and strategy.strip().lower() == "auto"


def options_of(strategy: Any) -> tuple[Option, ...]:
    """Return the options of a strategy; for ``"auto"``, those of all that it may choose."""
    if not is_auto(strategy):
        return get_strategy(strategy).option_table()
    chosen = (*AdaptiveMMES.option_table(), *ActiveCMA.option_table())
    return tuple({option.name: option for option in reversed(chosen)}.values())[::-1]


def strategies_with(option: str) -> list[str]:
    """Return the names of the strategies that have an option."""
    return [n for n, s in STRATEGIES.items() if option in {o.name for o in s.option_table()}]


def get_strategy(strategy: Any) -> type[Optimizer]:
    """Return a strategy: a built-in one by name, or the user's.

    Parameters
    ----------
    strategy : str or type
        A name (see `named_strategy`); the location of the user's strategy, ``file.py:Class`` or
        ``package.module:Class``; or a subclass of `Optimizer`.

    Raises
    ------
    ValueError
        If there is no strategy of that name; the message suggests the most similar one.
    TypeError
        If it is neither a name nor a strategy.
    """
    if isinstance(strategy, str) and is_location(strategy):
        found = load_object(strategy, "class")
        if not _is_strategy(found):
            raise TypeError(f"{strategy} must be a subclass of mmes.extend.AskTell, not {found!r}")
        return found
    return strategy if _is_strategy(strategy) else named_strategy(strategy)


def named_strategy(strategy: Any) -> type[Optimizer]:
    """Return the strategy of a name; never runs the user's code.

    Upper and lower case and hyphens are not distinguished, and a trailing "-es" or "-mmes" is
    optional: ``"sep-cma"``, ``"SepCMA"`` and ``"sep-CMA-ES"`` are the same.
    """
    if not isinstance(strategy, str):
        raise TypeError(
            "strategy must be a name or a strategy class, "
            f"not {strategy!r} (a {type(strategy).__name__})"
        )
    found = _spelt(strategy, STRATEGIES)
    if found is None:
        registered = entry_points(REGISTERED)
        entry = _spelt(strategy, registered)
        if entry is None:
            near = suggestion(strategy.lower(), {**STRATEGIES, **registered})
            raise ValueError(f"there is no strategy {strategy!r}{near}")
        found = entry.load()
        if not _is_strategy(found):
            raise TypeError(
                f"the entry point {strategy!r} of {REGISTERED!r} must be a subclass of "
                f"mmes.extend.Optimizer, not {found!r}"
            )
    return found


def _spelt(name: str, known: Mapping[str, T]) -> T | None:
    table = {_plain(name): found for name, found in known.items()}
    plain = _plain(name)
    for spelling in (plain, plain + "es", plain.removesuffix("es"), plain.removesuffix("mmes")):
        if spelling in table:
            return table[spelling]
    return None


def _is_strategy(thing: Any) -> TypeGuard[type[Optimizer]]:
    return isinstance(thing, type) and issubclass(thing, Optimizer)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
