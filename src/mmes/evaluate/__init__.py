"""Evaluation of candidates: from points to values, for any behaviour of the objective."""
