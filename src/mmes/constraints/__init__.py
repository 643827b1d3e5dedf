"""Constraints: what users give, the augmented Lagrangian, the best feasible point."""

from mmes.constraints.given import Constraints, Equality, check_usable
from mmes.constraints.handling import Handling
from mmes.constraints.lagrangian import Lagrangian

__all__ = ["Constraints", "Equality", "Handling", "Lagrangian", "check_usable"]
