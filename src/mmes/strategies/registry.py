"""All strategies by name, as in `minimize(strategy=...)` and on the command line."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from typing import Any, TypeGuard, TypeVar

from mmes.base.loading import entry_points, is_location, late_names, load_object
from mmes.base.options import Option, suggestion
from mmes.strategies.mmes import MMES, AdaptiveMMES
from mmes.strategies.shell.ask_tell import AskTell
from mmes.strategies.shell.optimizer import Optimizer

T = TypeVar("T")

REGISTERED = "mmes.strategies"
"""The group of entry points under which other packages, and the laboratory, name optimizers."""

# The rivals: their modules, which are imported when they are used, and their classes.
_RIVALS = {
    "cma-es": ("cma", "CMAES"),
    "active-cma": ("cma", "ActiveCMA"),
    "sep-cma": ("sep_cma", "SepCMA"),
    "lm-cma": ("lm_cma", "LMCMA"),
    "lm-ma": ("lm_ma", "LMMA"),
    "rm-es": ("rm_es", "RmES"),
    "r1-es": ("rm_es", "R1ES"),
    "sda-es": ("sda_es", "SDAES"),
    "fast-cma": ("fast_cma", "FastCMA"),
    "isotropic-es": ("isotropic_es", "IsotropicES"),
}
rival = late_names("mmes.strategies", {kind: module for module, kind in _RIVALS.values()})


class _Strategies(UserDict[str, Any]):
    """Strategies by their names; a rival is a word until somebody asks for its class."""

    def __getitem__(self, name: str) -> type[AskTell]:
        found = self.data[name]
        if isinstance(found, str):
            found = self.data[name] = rival(found)
        return found


STRATEGIES = _Strategies(
    {"mmes": MMES, "adaptive": AdaptiveMMES} | {name: kind for name, (_, kind) in _RIVALS.items()}
)

AUTO_LIMIT = 100
"""Up to this many variables ``"auto"`` chooses active CMA-ES, with its full covariance matrix."""


def automatic(n: int, manifold: bool = False, elsewhere: str = "") -> tuple[type[AskTell], str]:
    """Return the strategy that ``"auto"`` chooses for n variables, and why.

    `elsewhere` says why CMA-ES, which uses numpy's matrices, cannot be used; empty if it can.
    """
    if manifold:
        return MMES, "it searches manifolds"
    if n > AUTO_LIMIT:
        return AdaptiveMMES, f"n = {n} is above {AUTO_LIMIT}"
    if elsewhere:
        return AdaptiveMMES, elsewhere
    return STRATEGIES["active-cma"], f"n = {n} is at most {AUTO_LIMIT}"


def is_auto(strategy: Any) -> bool:
    """Return whether the strategy is chosen by the number of variables."""
    return isinstance(strategy, str) and strategy.strip().lower() == "auto"


def options_of(strategy: Any) -> tuple[Option, ...]:
    """Return the options of a strategy; for ``"auto"``, those of all that it may choose."""
    if not is_auto(strategy):
        return get_strategy(strategy).option_table()
    chosen = (*AdaptiveMMES.option_table(), *STRATEGIES["active-cma"].option_table())
    return tuple({option.name: option for option in reversed(chosen)}.values())[::-1]


def strategies_with(option: str) -> list[str]:
    """Return the names of the strategies that have an option."""
    return [n for n, s in STRATEGIES.items() if option in {o.name for o in s.option_table()}]


def get_strategy(strategy: Any) -> type[Optimizer]:
    """Return a strategy: a built-in one by name (see `named_strategy`), or the user's.

    That is a subclass of `Optimizer`, or its location, ``file.py:Class`` or
    ``package.module:Class``.

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
            near = suggestion(strategy.lower(), [*STRATEGIES, *registered])
            raise ValueError(f"there is no strategy {strategy!r}{near}")
        found = entry.load()
        if not _is_strategy(found):
            raise TypeError(
                f"the entry point {strategy!r} of {REGISTERED!r} must be a subclass of "
                f"mmes.extend.Optimizer, not {found!r}"
            )
    return found


def _spelt(name: str, known: Mapping[str, T]) -> T | None:
    table = {_plain(key): key for key in known}
    plain = _plain(name)
    for spelling in (plain, plain + "es", plain.removesuffix("es"), plain.removesuffix("mmes")):
        if spelling in table:
            return known[table[spelling]]
    return None


def _is_strategy(thing: Any) -> TypeGuard[type[Optimizer]]:
    return isinstance(thing, type) and issubclass(thing, Optimizer)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
