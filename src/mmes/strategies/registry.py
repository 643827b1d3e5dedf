"""Every strategy by its name: what `minimize(strategy=...)` and the command line take."""

from __future__ import annotations

from typing import Any

from mmes.options import suggestion
from mmes.strategies.ask_tell import AskTell
from mmes.strategies.cma import CMAES
from mmes.strategies.fast_cma import FastCMA
from mmes.strategies.isotropic_es import IsotropicES
from mmes.strategies.lm_cma import LMCMA
from mmes.strategies.lm_ma import LMMA
from mmes.strategies.mmes import MMES
from mmes.strategies.rm_es import R1ES, RmES
from mmes.strategies.sda_es import SDAES
from mmes.strategies.sep_cma import SepCMA

STRATEGIES: dict[str, type[AskTell]] = {
    strategy.name: strategy
    for strategy in (MMES, CMAES, SepCMA, LMCMA, LMMA, RmES, R1ES, SDAES, FastCMA, IsotropicES)
}


def get_strategy(strategy: Any) -> type[AskTell]:
    """Return the strategy of a name; a strategy itself (one of yours, say) is handed back.

    Parameters
    ----------
    strategy : str or type
        A key of `STRATEGIES`, or a subclass of `AskTell`. Upper and lower case and hyphens are not
        distinguished, and a trailing "-es" may be there or not: ``"sep-cma"``, ``"SepCMA"`` and
        ``"sep-CMA-ES"`` are the same.

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
            "strategy must be a name or a strategy class, "
            f"not {strategy!r} (a {type(strategy).__name__})"
        )
    table = {_plain(name): known for name, known in STRATEGIES.items()}
    plain = _plain(strategy)
    for spelling in (plain, plain + "es", plain.removesuffix("es")):
        if spelling in table:
            return table[spelling]
    raise ValueError(f"there is no strategy {strategy!r}{suggestion(strategy.lower(), STRATEGIES)}")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
