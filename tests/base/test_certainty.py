"""Rounding of values, and averages of few values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mmes.base.certainty import ROUNDING, share_of_rounding, student


# Quantiles of Student's t at the probability of two standard deviations, from a table.
@pytest.mark.parametrize(
    ("freedom", "exact", "share"),
    [(1, 13.97, 0.5), (2, 4.527, 0.12), (3, 3.307, 0.05), (9, 2.320, 0.002), (10**6, 2.0, 1e-5)],
)
def test_student_is_near_the_quantiles_and_not_above(
    freedom: int, exact: float, share: float
) -> None:
    assert exact * (1 - share) < student(2.0, freedom) < exact * (1 + 1e-3)


def test_one_value_counts_as_two() -> None:
    assert student(2.0, 0) == student(2.0, 1)


def test_numbers_of_single_precision_are_told_by_their_digits() -> None:
    values = np.random.default_rng(1).standard_normal(1000)
    for double, single in zip(values, values.astype(np.float32), strict=True):
        assert share_of_rounding(float(double)) == ROUNDING
        assert share_of_rounding(float(single), 2.0) > ROUNDING
        assert share_of_rounding(float(single), float(double)) == ROUNDING
    assert share_of_rounding(300.0, 17.0) == ROUNDING  # counts, as of errors
    assert share_of_rounding(float(np.float32(1e30))) > ROUNDING
    assert share_of_rounding(math.nan, 1.0) == ROUNDING
    assert share_of_rounding(1e300) == ROUNDING
