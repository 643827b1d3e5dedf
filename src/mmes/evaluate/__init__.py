"""Evaluation of candidates: from points to values, whatever the objective does."""
