"""The strategies: MMES and those it is compared with, all with one ask/tell interface."""

from mmes.strategies.cma import CMAES, ActiveCMA
from mmes.strategies.fast_cma import FastCMA
from mmes.strategies.isotropic_es import IsotropicES
from mmes.strategies.lm_cma import LMCMA
from mmes.strategies.lm_ma import LMMA
from mmes.strategies.mmes import MMES, AdaptiveMMES, RiemannianMMES
from mmes.strategies.registry import (
    AUTO_LIMIT,
    STRATEGIES,
    automatic,
    get_strategy,
    is_auto,
    named_strategy,
    options_of,
    strategies_with,
)
from mmes.strategies.rm_es import R1ES, RmES
from mmes.strategies.sda_es import SDAES
from mmes.strategies.sep_cma import SepCMA
from mmes.strategies.shell.ask_tell import AskTell
from mmes.strategies.shell.optimizer import Optimizer

__all__ = [
    "AUTO_LIMIT",
    "CMAES",
    "LMCMA",
    "LMMA",
    "MMES",
    "R1ES",
    "SDAES",
    "STRATEGIES",
    "ActiveCMA",
    "AdaptiveMMES",
    "AskTell",
    "FastCMA",
    "IsotropicES",
    "Optimizer",
    "RiemannianMMES",
    "RmES",
    "SepCMA",
    "automatic",
    "get_strategy",
    "is_auto",
    "named_strategy",
    "options_of",
    "strategies_with",
]
