"""The basic problems against their formulas written out coordinate by coordinate."""

import pickle
import time
import tracemalloc

import numpy as np
import pytest

from mmes import problems
from mmes.problems.functions import DESCRIPTIONS, rotation_matrix

N = 7
PLAIN = [name for name in DESCRIPTIONS if not name.startswith("rotated_")]
ROTATED = [name for name in DESCRIPTIONS if name.startswith("rotated_")]


def by_hand(kind: str, x: np.ndarray) -> float:
    n = len(x)
    u = [i / (n - 1) for i in range(n)]
    terms = {
        "sphere": lambda i: x[i] ** 2,
        "ellipsoid": lambda i: 10 ** (6 * u[i]) * x[i] ** 2,
        "discus": lambda i: (1e6 if i == 0 else 1) * x[i] ** 2,
        "cigar": lambda i: (1 if i == 0 else 1e6) * x[i] ** 2,
        "different_powers": lambda i: abs(x[i]) ** (2 + 4 * u[i]),
        "rosenbrock": lambda i: (
            100 * (x[i] ** 2 - x[i + 1]) ** 2 + (x[i] - 1) ** 2 if i < n - 1 else 0.0
        ),
    }
    return sum(terms[kind](i) for i in range(n))


@pytest.fixture
def points():
    return np.random.Generator(np.random.Philox(5)).uniform(-5, 5, (9, N))


@pytest.mark.parametrize("name", PLAIN)
def test_value_is_the_formula(name, points):
    problem = problems.get(name, dimension=N)
    expected = [by_hand(name, x) for x in points]
    np.testing.assert_allclose(problem(points), expected, rtol=1e-13)


@pytest.mark.parametrize("name", ROTATED)
def test_rotated_value_is_the_formula_of_the_rotated_point(name, points):
    problem = problems.get(name, dimension=N, seed=3)
    rotation = rotation_matrix(N, 3)
    expected = [by_hand(name.removeprefix("rotated_"), rotation @ x) for x in points]
    np.testing.assert_allclose(problem(points), expected, rtol=1e-12)
    assert problem.details["seed"] == 3


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_optimum_box_and_single_point(name, points):
    problem = problems.get(name, dimension=N)
    optimum = problem.optimum
    assert optimum is not None
    assert problem(optimum) == pytest.approx(0.0, abs=1e-24)
    assert np.all(problem(optimum + 0.01 * np.eye(N)) > 0)
    assert problem.minimum == 0.0
    np.testing.assert_array_equal(problem.bounds, [[-5.0] * N, [5.0] * N])
    single = problem(points[0])
    assert isinstance(single, float)
    assert single == pytest.approx(problem(points)[0], rel=1e-13)
    assert problem(points[:0]).shape == (0,)


@pytest.mark.parametrize("name", PLAIN)
def test_values_do_not_depend_on_the_batch(name):
    """A point has the same bits alone, in a batch, and as a strided view."""
    x = np.random.Generator(np.random.Philox(6)).standard_normal((31, 1003))
    problem = problems.get(name, dimension=1003)
    together = problem(x)
    np.testing.assert_array_equal(together, [problem(row) for row in x])
    np.testing.assert_array_equal(together, problem(np.asfortranarray(x)))
    reference = problem.batch.reference
    np.testing.assert_array_equal(reference(x), [reference(row[None])[0] for row in x])


def test_alpha_sets_the_conditioning():
    problem = problems.get("ellipsoid", dimension=5, alpha=3)
    np.testing.assert_allclose(problem(np.eye(5)), 10 ** np.linspace(0, 3, 5))


def test_rotation_is_orthogonal_and_belongs_to_its_seed():
    first = rotation_matrix(40, 3)
    np.testing.assert_allclose(first @ first.T, np.eye(40), atol=1e-13)
    assert np.abs(first - rotation_matrix(40, 4)).max() > 0.1
    np.testing.assert_array_equal(first, rotation_matrix(40, 3))


def test_rotation_is_uniform():
    """Signs of the entries of the first row are fair, and its first entry has variance 1/n.

    Without the sign correction the diagonal of Q has one sign only. 400 draws: the count of
    positive signs is binomial, outside 200 +- 50 with probability 7e-7; the mean of n q^2 has
    standard deviation below 0.07 (n q^2 has variance 2 (n-1)/(n+2)), so +-0.35 is 5 sigma.
    """
    n = 6
    corners = np.array([rotation_matrix(n, seed)[0, 0] for seed in range(400)])
    assert abs((corners > 0).sum() - 200) < 50
    assert abs(n * np.mean(corners**2) - 1) < 0.35


def test_rotation_is_not_drawn_before_it_is_needed():
    tracemalloc.start()
    problem = problems.get("rotated_rosenbrock", dimension=5_000)  # 200 MB if it were
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert problem.dimension == 5_000
    assert peak < 10**7


def test_pickled_problem_has_the_same_values_and_no_matrix(points):
    problem = problems.get("rotated_different_powers", dimension=N, seed=2)
    values = problem(points)
    packed = pickle.dumps(problem)
    assert len(packed) < 2500
    np.testing.assert_array_equal(pickle.loads(packed)(points), values)


def test_huge_and_nan_points_are_evaluated_quietly():
    problem = problems.get("rosenbrock", dimension=3)
    assert problem([1e200, 0, 0]) == np.inf
    assert np.isnan(problem([np.nan, 0, 0]))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("cigar", {"dimension": 0}, "cigar needs a dimension of at least 1, not 0"),
        ("rosenbrock", {"dimension": 1}, "at least 2, not 1"),
        ("cigar", {"dimension": 2.5}, "integer of at least 1, not 2.5"),
        ("cigar", {"dimension": True}, "not True"),
        ("cigar", {"dimension": 3, "seed": 1}, "seed=1 belongs to the rotated"),
        ("cigar", {"dimension": 3, "alpha": 1}, "alpha=1 belongs to the ellipsoids"),
        ("ellipsoid", {"dimension": 3, "alpha": 1e4}, "alpha must be a number from -300 to 300"),
        ("ellipsoid", {"dimension": 3, "alpha": np.inf}, "alpha must be a number from -300 to 300"),
        ("rotated_cigar", {"dimension": 3, "seed": -1}, "non-negative integer, not -1"),
    ],
)
def test_bad_options_are_named(name, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        problems.get(name, **options)


def test_wrong_shape_is_named():
    with pytest.raises(ValueError, match=r"\(k, 4\), not \(2, 3\)"):
        problems.get("sphere", dimension=4)(np.zeros((2, 3)))


@pytest.mark.parametrize("name", ["rotated_cigar", "sphere"])
def test_what_does_not_fit_is_refused_at_once(name):
    """Failed before: memory was filled, for minutes, before anything was said."""
    began = time.monotonic()
    n = 10**9 if name.startswith("rotated") else 10**13
    with pytest.raises(MemoryError, match=f"{name} with {n:,} variables needs about .* are usable"):
        problems.get(name, dimension=n)
    assert time.monotonic() - began < 5
