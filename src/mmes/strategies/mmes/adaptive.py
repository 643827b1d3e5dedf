"""AdaptiveMMES: MMES that adapts to the problem.

It uses the generation of MMES with five changes:

- adaptive scaling, with the rate c_d = min(0.002, 0.06 / sqrt n), or less where nothing is learnt
  (`scale_rate`);
- adaptive mirroring (`mirroring`): independent draws with signed weights where the linear part of
  the objective decides the ranking, mirrored pairs where its curvature does;
- a step size by two forces at the rate lambda / n (`step_size_forces`), so that the mutation
  strength does not collapse at kinks or on a rugged objective;
- a mixing rate of at most 1 - (2/3)^(1/m), so that the isotropic part keeps two thirds of the
  variance and the first steps have about the length sigma0, even with few variables;
- no row for the start point: every generation has lambda candidates.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

from mmes.base.options import Option
from mmes.strategies.mmes import step_size_forces as forces
from mmes.strategies.mmes.parameters import OPTIONS, Parameters
from mmes.strategies.mmes.scale_rate import FASTEST, learns_rate
from mmes.strategies.mmes.strategy import MMES, MMESSearch
from mmes.strategies.parts.population import value_or

# At a kink, the rate of the scales grows by this factor with every doubling of the population, up
# to the second. Not with every larger population: on rotated Discus, n = 150, four times the
# population would need 1.7 times the evaluations.
_FASTER, _LARGEST_C_D = 2**1.5, 0.1


def default_c_a(n: int, m: int) -> float:
    """Return min(4/n, 1 - (2/3)^(1/m))."""
    return min(4.0 / n, -math.expm1(math.log(2 / 3) / m))


def default_c_d(n: int) -> float:
    """Return min(0.002, 0.06 / sqrt n): the largest rate that costs rotated Discus little."""
    return min(0.002, 0.06 / math.sqrt(n))


def _option_table() -> tuple[Option, ...]:
    changes: dict[str, dict[str, Any]] = {
        "scaling": {
            "text": "'adaptive' learns one scale per variable during the run; 'off' keeps `scale`.",
            "default": "adaptive",
        },
        "damping": {
            "text": "Divisor of the learning rate of sigma; doubled with lambda at each restart."
        },
        "c_s": {"default": forces.C_S},
        "c_a": {"default_text": "min(4 / n, 1 - (2/3)^(1/m))"},
        "c_d": {
            "text": "Learning rate of the adaptive scaling; see `scale_rate`.",
            "default_text": "min(0.002, 0.06 / sqrt n)",
        },
    }
    mirroring = Option(
        "mirroring",
        str,
        "'adaptive' decides by the ranking of mirrored pairs how many candidates are drawn "
        "independently; 'off' mirrors all of them, as MMES does.",
        default="adaptive",
        choices=("adaptive", "fixed"),
        spelt={"fixed": "off"},
    )
    step_size = Option(
        "step_size",
        str,
        "Rule for sigma: 'forces'; 'paired', as in MMES; 'probes', if values of different "
        "generations cannot be compared; 'auto': 'forces', or 'probes' if that is detected.",
        default="auto",
        choices=("auto", "forces", "paired", "probes"),
    )
    scale_rate = Option(
        "scale_rate",
        str,
        "Learning rate of the scales: 'fixed' is `c_d`; 'adaptive' is less if nothing is learnt; "
        "'fast' is also more if much is learnt (smooth functions).",
        default="adaptive",
        choices=("adaptive", "fast", "fixed"),
    )
    return (
        step_size,
        scale_rate,
        *(
            mirroring
            if option.name == "mirrored"
            else replace(option, **changes.get(option.name, {}))
            for option in OPTIONS
        ),
    )


FORCES = ("auto", "forces")
"""Values of `step_size` that stand for two forces."""


class AdaptiveSearch(MMESSearch):
    """MMES with the parameters of AdaptiveMMES."""

    options: ClassVar = _option_table()
    needs_start_value: ClassVar = False

    @staticmethod
    def parameters_of(n: int, options: dict[str, Any], archive_size: int) -> Parameters:
        """See `MMESSearch.parameters_of`."""
        filled = options | {"mirrored": True}
        if options["c_a"] is None:
            filled["c_a"] = default_c_a(n, archive_size)
        if options["c_d"] is None:
            filled["c_d"] = default_c_d(n)
        made = Parameters.from_options(n, filled, archive_size)
        return replace(
            made,
            fastest_scaling=FASTEST[options["scale_rate"]] if learns_rate(n, options) else 0.0,
            adaptive_mirroring=options["mirroring"] == "adaptive",
            two_forces=options["step_size"] in FORCES,
            two_probes=options["step_size"] == "probes",
        )


class AdaptiveMMES(MMES):
    """MMES that adapts to the problem: the default of `mmes.minimize` for many variables.

    >>> import mmes, numpy as np
    >>> es = mmes.AdaptiveMMES(np.zeros(200), 1.0, seed=1)
    >>> while not es.stop(target=1e-8):
    ...     X = es.ask()
    ...     es.tell([float(x @ x) for x in X - 1])

    Parameters are those of `AskTell`; `AdaptiveMMES.option_table()` lists the options.
    """

    name = "adaptive"
    search_type = AdaptiveSearch
    on_manifolds = False
    grows_at_kinks = True

    def _at_kink(self, doublings: int) -> dict[str, Any]:
        """Let the scales learn faster.

        Variables that have reached their kink hide the progress of the others from the ranking,
        until their steps are much shorter. A larger population can tell the scales apart sooner.
        """
        if self.options["scaling"] != "adaptive":
            return {}
        c_d = value_or(self.options["c_d"], default_c_d(self._n))
        return {"c_d": min(c_d * _FASTER**doublings, max(c_d, _LARGEST_C_D))}
