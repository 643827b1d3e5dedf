"""The strategies: MMES and the rivals it is compared with, all behind one ask/tell interface."""

from mmes.strategies.ask_tell import AskTell
from mmes.strategies.mmes import MMES, RiemannianMMES

__all__ = ["MMES", "AskTell", "RiemannianMMES"]
