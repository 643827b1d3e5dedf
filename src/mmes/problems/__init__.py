"""Benchmark problems: the paper's basic functions and the CEC large-scale suites.

>>> from mmes import problems
>>> cigar = problems.get("cigar", dimension=10)
>>> cigar([1.0] + [0.0] * 9)
1.0
"""

from mmes.problems.native import levels as native_levels
from mmes.problems.problem import Problem
from mmes.problems.registry import Entry, entries, get, names

__all__ = ["Entry", "Problem", "entries", "get", "names", "native_levels"]
