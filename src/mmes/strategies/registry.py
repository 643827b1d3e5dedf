"""Every strategy by its name: what `minimize(strategy=...)` and the command line take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from mmes.base.loading import is_location, load_object
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

if TYPE_CHECKING:
    from mmes.lab.competitors import Competitor

AnyStrategy: TypeAlias = "AskTell | Competitor"
"""What `minimize` drives: a strategy, or a bounded algorithm of `mmes.lab.competitors`."""

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
"""Up to so many variables ``"auto"`` takes active CMA-ES: its full covariance matrix pays there."""


def automatic(n: int, manifold: bool = False, elsewhere: str = "") -> tuple[type[AskTell], str]:
    """Return the strategy that ``"auto"`` stands for, and why.

    Parameters
    ----------
    n : int
        Number of variables.
    manifold : bool
        Whether a manifold is searched.
    elsewhere : str
        Why CMA-ES, whose matrices are numpy's, cannot do it; empty where it can.
    """
    if manifold:
        return MMES, "it searches manifolds"
    if n > AUTO_LIMIT:
        return AdaptiveMMES, f"n = {n} is above {AUTO_LIMIT}"
    if elsewhere:
        return AdaptiveMMES, elsewhere
    return ActiveCMA, f"n = {n} is at most {AUTO_LIMIT}"


def is_auto(strategy: Any) -> bool:
    """Return whether the strategy is to be chosen by the number of variables."""
    return isinstance(strategy, str) and strategy.strip().lower() == "auto"


def options_of(strategy: Any) -> tuple[Option, ...]:
    """Return the options of a strategy; of ``"auto"`` those of all that it may choose."""
    if not is_auto(strategy):
        return get_strategy(strategy).option_table()
    chosen = (*AdaptiveMMES.option_table(), *ActiveCMA.option_table())
    return tuple({option.name: option for option in reversed(chosen)}.values())[::-1]


def strategies_with(option: str) -> list[str]:
    """Return the names of the strategies that know an option."""
    return [n for n, s in STRATEGIES.items() if option in {o.name for o in s.option_table()}]


def get_strategy(strategy: Any) -> type[AnyStrategy]:
    """Return a strategy: one of ours by its name, or one of the user's.

    Parameters
    ----------
    strategy : str or type
        A key of `STRATEGIES` or `COMPETITORS` (see `named_strategy`); where a strategy of yours
        is, as ``file.py:Class`` or ``package.module:Class``; or a subclass of `AskTell` itself.

    Raises
    ------
    ValueError
        If there is no strategy of that name; the message suggests the nearest.
    TypeError
        If it is neither a name nor a strategy.
    """
    if isinstance(strategy, str) and is_location(strategy):
        found = load_object(strategy, "class")
        if not _is_strategy(found):
            raise TypeError(
                f"{strategy} must be a subclass of mmes.strategies.AskTell, not {found!r}"
            )
        return found
    return strategy if _is_strategy(strategy) else named_strategy(strategy)


def named_strategy(strategy: Any) -> type[AnyStrategy]:
    """Return the strategy of a name; never runs code of the user's.

    Upper and lower case and hyphens are not distinguished, and a trailing "-es" or "-mmes" may be
    there or not: ``"sep-cma"``, ``"SepCMA"`` and ``"sep-CMA-ES"`` are the same.
    """
    if not isinstance(strategy, str):
        raise TypeError(
            "strategy must be a name or a strategy class, "
            f"not {strategy!r} (a {type(strategy).__name__})"
        )
    found = _spelt(strategy, STRATEGIES)
    if found is None:
        # Not at the top: few ask for them, and importing them takes a seventh of `import mmes`.
        from mmes.lab.competitors import COMPETITORS

        found = _spelt(strategy, COMPETITORS)
        if found is None:
            near = suggestion(strategy.lower(), {**STRATEGIES, **COMPETITORS})
            raise ValueError(f"there is no strategy {strategy!r}{near}")
    return found


def _spelt(name: str, known: Mapping[str, type[AnyStrategy]]) -> type[AnyStrategy] | None:
    table = {_plain(name): strategy for name, strategy in known.items()}
    plain = _plain(name)
    for spelling in (plain, plain + "es", plain.removesuffix("es"), plain.removesuffix("mmes")):
        if spelling in table:
            return table[spelling]
    return None


def _is_strategy(thing: Any) -> TypeGuard[type[AnyStrategy]]:
    if not isinstance(thing, type) or issubclass(thing, AskTell):
        return isinstance(thing, type)
    from mmes.lab.competitors import Competitor

    return issubclass(thing, Competitor)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
