"""The bounded algorithms that the CEC tables compare with, and differential grouping."""

from mmes.competitors.ccpso2 import CCPSO2
from mmes.competitors.decc_dg import DECCDG
from mmes.competitors.decc_g import DECCG
from mmes.competitors.grouping import Grouping, differential_grouping
from mmes.competitors.ma_sw_chains import MASWChains
from mmes.competitors.mos import MOS
from mmes.competitors.shade_ils import SHADEILS
from mmes.competitors.shell import Competitor

COMPETITORS: dict[str, type[Competitor]] = {
    competitor.name: competitor for competitor in (DECCG, DECCDG, CCPSO2, MASWChains, MOS, SHADEILS)
}

__all__ = [
    "CCPSO2",
    "COMPETITORS",
    "DECCDG",
    "DECCG",
    "MOS",
    "SHADEILS",
    "Competitor",
    "Grouping",
    "MASWChains",
    "differential_grouping",
]
