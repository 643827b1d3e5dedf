"""Large-scale black-box optimization with the Mixture Model based Evolution Strategy (MMES)."""

from mmes.strategies import MMES

__all__ = ["MMES"]
