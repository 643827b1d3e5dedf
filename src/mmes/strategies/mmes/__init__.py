"""MMES: Mixture Model based Evolution Strategy (He, Zheng, Zhou 2021), and AdaptiveMMES."""

from mmes.strategies.mmes.adaptive import AdaptiveMMES
from mmes.strategies.mmes.parameters import OPTIONS, Parameters
from mmes.strategies.mmes.state import State
from mmes.strategies.mmes.strategy import MMES, RiemannianMMES

__all__ = ["MMES", "OPTIONS", "AdaptiveMMES", "Parameters", "RiemannianMMES", "State"]
