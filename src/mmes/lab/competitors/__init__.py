"""The algorithms for bounded problems in the CEC tables, and differential grouping."""

from mmes.lab.competitors.ccpso2 import CCPSO2
from mmes.lab.competitors.decc_dg import DECCDG
from mmes.lab.competitors.decc_g import DECCG
from mmes.lab.competitors.ma_sw_chains import MASWChains
from mmes.lab.competitors.mos import MOS
from mmes.lab.competitors.parts.grouping import Grouping, differential_grouping
from mmes.lab.competitors.shade_ils import SHADEILS
from mmes.lab.competitors.shell import Competitor

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
