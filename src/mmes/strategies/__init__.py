"""The strategies: MMES and the rivals it is compared with, all behind one ask/tell interface."""

from mmes.strategies.ask_tell import AskTell
from mmes.strategies.mmes import MMES
from mmes.strategies.registry import STRATEGIES, get_strategy

__all__ = ["MMES", "STRATEGIES", "AskTell", "get_strategy"]
