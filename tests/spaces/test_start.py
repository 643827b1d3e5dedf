"""Where a run starts: one rule for the size of a box, one generator of uniform starts."""

from __future__ import annotations

import numpy as np
import pytest

import mmes
from mmes.run.restarts import start_point, uniform_start
from mmes.spaces.space import Space
from mmes.spaces.start import checked_sigma, size_of_box


def test_the_first_step_is_a_share_of_each_width() -> None:
    lower, upper = np.zeros(3), np.array([1.0, 10.0, 100.0])
    sigma, scale = size_of_box(lower, upper)
    np.testing.assert_allclose(sigma * scale, 0.3 * upper)
    assert sigma == pytest.approx(3.0)  # of the geometric mean, 10
    assert size_of_box(np.zeros(4), np.full(4, 2.0)) == (0.6, None)
    with pytest.raises(ValueError, match="all variables are fixed"):
        size_of_box(lower, lower)


def test_a_fixed_variable_does_not_count() -> None:
    sigma, scale = size_of_box(np.zeros(3), np.array([0.0, 2.0, 2.0]))
    assert sigma == pytest.approx(0.6)
    np.testing.assert_allclose(scale, 1.0)


def test_a_run_starts_where_the_shared_generator_says() -> None:
    lower, upper = np.array([-1.0, 0.0]), np.array([3.0, 100.0])
    place = Space.checked(None, None, (lower, upper), None)
    expected = uniform_start(lower, upper, 7)
    np.testing.assert_array_equal(start_point(place, 7, 0), expected)
    assert ((lower <= expected) & (expected <= upper)).all()
    assert not np.array_equal(expected, uniform_start(lower, upper, 8))
    assert not np.array_equal(expected, uniform_start(lower, upper, 7, 1))


def test_uniform_starts_are_uniform() -> None:
    """Chi-square over ten bins; false alarms once in a thousand, with another seed."""
    points = uniform_start(np.full(100_000, -5.0), np.full(100_000, 5.0), 1)
    counts = np.histogram(points, 10, (-5, 5))[0]
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 27.88


def test_restarts_around_x0_use_the_scale() -> None:
    place = Space(np.zeros(2000), 1.0, None, np.repeat([1.0, 100.0], 1000))
    point = start_point(place, 3, 1)
    assert 0.9 < point[:1000].std() < 1.1
    assert 90 < point[1000:].std() < 110


@pytest.mark.parametrize("bounds", [[], ([], []), np.empty((0, 2))])
@pytest.mark.parametrize("x0", [None, [1.0, 2.0]])
def test_empty_bounds_are_called_empty(bounds, x0) -> None:
    """Failed before: "sigma0 is needed: the box has no width to take it from"."""
    with pytest.raises(ValueError, match="bounds are empty"):
        Space.checked(x0, None, bounds, None)


@pytest.mark.parametrize("sigma0", [10**400, -(10**400)])
def test_a_number_that_no_float_can_hold_is_refused_in_a_sentence(sigma0) -> None:
    """Failed before: a bare OverflowError."""
    with pytest.raises(ValueError, match="sigma0 must be a finite number > 0"):
        checked_sigma(sigma0)
    with pytest.raises(ValueError, match="target must be a finite number"):
        mmes.minimize(lambda x: 0.0, [1.0], 1.0, target=sigma0)


def test_scale_is_advised_where_several_numbers_are_given() -> None:
    for sigma0, advised in (([1.0, 2.0], True), (np.ones(2), True), ("1", False), (None, False)):
        with pytest.raises(TypeError, match="sigma0 must be a finite number > 0") as caught:
            checked_sigma(sigma0)
        assert ("scale=" in str(caught.value)) == advised


def test_bounds_that_are_too_large_are_called_so() -> None:
    """Failed before: they were said not to be finite."""
    for x0, name in ((None, "x0"), ([0.0, 0.0], "sigma0")):
        with pytest.raises(ValueError, match=rf"{name} is needed, unless all .* within ±1e\+100"):
            Space.checked(x0, None, ([-1e300, -1e300], 1e300), None)


def test_a_box_of_one_point_is_called_so() -> None:
    with pytest.raises(ValueError, match="all variables are fixed"):
        Space.checked(None, None, ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), None)


@pytest.mark.parametrize("strategy", ["auto", "mmes"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"xtol": 10.0}, "xtol must be a finite number >= 0 and < 1, not 10.0"),
        ({"xtol": 1}, "xtol must be a finite number >= 0 and < 1, not 1"),
        ({"sigma_max": 0.1}, "sigma_max must be > sigma0 = 0.3, not 0.1"),
        ({"sigma_min": 0.3}, "sigma_min must be < sigma0 = 0.3, not 0.3"),
    ],
)
def test_limits_that_end_a_search_at_its_start_are_refused(strategy, options, message) -> None:
    """Failed before: xtol=10 was a success after one evaluation."""
    with pytest.raises(ValueError, match=message):
        mmes.minimize(lambda x: float(x @ x), np.ones(4), 0.3, strategy=strategy, **options)
