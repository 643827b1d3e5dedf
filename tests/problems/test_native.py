"""The native helper against numpy, on every SIMD level that this machine has."""

import pickle

import numpy as np
import pytest

from mmes import problems
from mmes.problems import native, native_levels
from mmes.problems.composition import Base, Composition, Part, Transform
from mmes.problems.functions import DESCRIPTIONS

pytestmark = pytest.mark.skipif(not native_levels(), reason="the native helper is not built")
TRANSFORMED = Transform.OSCILLATE | Transform.ASYMMETRIC
NAMES = [name for name in problems.names() if name.startswith("lsgo")]
BASIC = [name for name in DESCRIPTIONS if not name.startswith("rotated_")]


@pytest.fixture(params=["baseline", "avx2", "avx512"])
def level(request):
    if request.param not in native_levels():
        pytest.skip(f"this machine has no {request.param}")
    return request.param


def random_points(problem, count: int) -> np.ndarray:
    """Return points all over the box, and some close to the optimum."""
    generator = np.random.Generator(np.random.Philox(11))
    points = generator.uniform(*problem.bounds, (count, problem.dimension))
    if problem.optimum is not None:
        near = 10.0 ** -np.arange(1, count // 2 + 1)[:, None]
        points[: len(near)] = problem.optimum + near * (points[: len(near)] - problem.optimum)
    return points


def one_variable(base: Base, z: np.ndarray, transform: Transform, level: str) -> np.ndarray:
    """Return the native value at a group of two variables, 0 and z: the ramp of z's place is 1."""
    part = Part(base, np.arange(2, dtype=np.int32), np.zeros(2), transform=transform)
    return Composition((part,)).native(np.stack([np.zeros_like(z), z], axis=1), level)


def test_golden_values_hold_at_every_level(golden, level):
    problem, points, values, _ = golden
    np.testing.assert_allclose(problem.batch.native(points, level), values, rtol=1e-11, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_native_agrees_with_numpy(name, level):
    problem = problems.get(name)
    points = random_points(problem, 13)
    native = problem.batch.native(points, level)
    # Rastrigin and Ackley lose digits in numpy near the optimum, where cos is close to 1.
    weight = max(1.0, *(part.weight for part in problem.batch.parts))
    np.testing.assert_allclose(
        native, problem.batch.reference(points), rtol=2e-10, atol=1e-11 * weight
    )


@pytest.mark.parametrize("name", NAMES)
def test_value_does_not_depend_on_the_batch(name, level):
    problem = problems.get(name)
    points = random_points(problem, 13)
    together = problem.batch.native(points, level)
    alone = [problem.batch.native(points[i : i + 1], level)[0] for i in range(13)]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("name", NAMES)
def test_levels_with_fused_multiply_add_give_the_same_bits(name):
    if not {"avx2", "avx512"} <= set(native_levels()):
        pytest.skip("needs AVX2 and AVX-512")
    problem = problems.get(name)
    points = random_points(problem, 13)
    np.testing.assert_array_equal(
        problem.batch.native(points, "avx2"), problem.batch.native(points, "avx512")
    )


@pytest.mark.parametrize("n", [2, 3, 15, 16, 17, 40, 1003])
@pytest.mark.parametrize("name", BASIC)
def test_basic_problems_agree_with_numpy(name, n, level):
    function = problems.get(name, dimension=n).batch
    generator = np.random.Generator(np.random.Philox(7))
    points = generator.standard_normal((5, n)) * 10.0 ** np.arange(-3, 2)[:, None]
    points[1, n // 2] = 0.0
    value = function.native(points, level)
    np.testing.assert_allclose(value, function.reference(points), rtol=2e-14)
    if level == "avx2" and "avx512" in native_levels():
        np.testing.assert_array_equal(value, function.native(points, "avx512"))


def test_basic_problems_refuse_wrong_arrays():
    rows = native.helper.evaluate_rows
    with pytest.raises(ValueError, match="unknown kind"):
        rows(np.zeros((2, 3)), 4, np.zeros(3))
    with pytest.raises(ValueError, match="number of coefficients"):
        rows(np.zeros((2, 3)), 1, np.zeros(4))
    with pytest.raises(ValueError, match="too few variables"):
        rows(np.zeros((2, 1)), 2, np.zeros(0))
    with pytest.raises(ValueError, match="too few variables"):
        rows(np.zeros((2, 0)), 0, np.zeros(2))


def test_without_the_helper_numpy_evaluates(monkeypatch):
    problem = problems.get("lsgo2013/f5")
    points = random_points(problem, 3)
    with monkeypatch.context() as patch:
        patch.setattr(native, "helper", None)
        np.testing.assert_array_equal(problem(points), problem.batch.reference(points))
        assert problems.native_levels() == []
        sphere = problems.get("sphere", dimension=3)
        assert sphere([1.0, 2.0, 3.0]) == 14.0
        with pytest.raises(RuntimeError, match="is not built"):
            sphere.batch.native(np.zeros((1, 3)))
        with pytest.raises(RuntimeError, match="is not built"):
            problem.batch.native(points)


def test_oscillation_is_accurate_over_the_whole_range(level):
    z = np.concatenate([s * np.logspace(-150, 150, 20_001) for s in (1, -1)])
    h = np.log(np.abs(z).astype(np.longdouble))
    c1, c2 = np.where(z > 0, 10, 5.5), np.where(z > 0, np.longdouble("7.9"), np.longdouble("3.1"))
    exact = np.exp(h + np.longdouble("0.049") * (np.sin(c1 * h) + np.sin(c2 * h)))
    value = np.sqrt(one_variable(Base.SPHERE, z, Transform.OSCILLATE, level))
    # Rounding h and the sum in the exponent costs 2^-53 |h| each, and h enters the sines tenfold:
    # about 4 |h| 2^-53 is what any double precision code, numpy's too, loses here.
    tolerance = 4e-16 + 4.5e-16 * np.abs(h)
    assert np.all(np.abs(value - exact) <= tolerance * exact)


def test_asymmetry_is_accurate(level):
    z = np.logspace(-8, 2.5, 20_001)
    h = np.log(z.astype(np.longdouble))
    e = h + np.longdouble("0.049") * (np.sin(10 * h) + np.sin(np.longdouble("7.9") * h))
    power = 1 + np.longdouble("0.2") * np.exp(e / 2)
    exact = np.exp(e * power)
    value = np.sqrt(one_variable(Base.SPHERE, z, TRANSFORMED, level))
    assert np.all(np.abs(value - exact) <= exact * (4e-16 + 6e-16 * np.abs(e) * power**1.5))
    negative = one_variable(Base.SPHERE, -z, TRANSFORMED, level)
    np.testing.assert_array_equal(
        negative, one_variable(Base.SPHERE, -z, Transform.OSCILLATE, level)
    )


def test_waves_are_accurate_and_do_not_cancel(level):
    z = np.concatenate([np.logspace(-8, 0, 5001), np.linspace(-30, 30, 20_011), [0.0]])
    exact = 20 * np.sin(np.pi * (z - np.round(z)).astype(np.longdouble)) ** 2
    exact += z.astype(np.longdouble) ** 2
    value = one_variable(Base.RASTRIGIN, z, Transform.NONE, level)
    np.testing.assert_allclose(value, exact.astype(float), rtol=1e-15)


def test_minimum_is_exactly_zero(level):
    for base in (Base.SPHERE, Base.ELLIPTIC, Base.RASTRIGIN, Base.ACKLEY, Base.SCHWEFEL):
        for transform in (Transform.NONE, TRANSFORMED):
            assert one_variable(base, np.zeros(1), transform, level)[0] == 0.0


@pytest.mark.parametrize("transform", [Transform.NONE, Transform.OSCILLATE, TRANSFORMED])
def test_special_values(transform, level):
    tiny, huge = 5e-324, 1e300
    with np.errstate(over="ignore", invalid="ignore"):
        values = one_variable(Base.SPHERE, np.array([np.nan, tiny, huge, 0.0]), transform, level)
    assert np.isnan(values[0])
    assert values[1] == 0.0
    assert values[2] == np.inf
    assert values[3] == 0.0
    assert np.isnan(one_variable(Base.RASTRIGIN, np.array([np.nan]), transform, level)[0])


def test_empty_batch(level):
    assert problems.get("lsgo2010/f4").batch.native(np.empty((0, 1000)), level).shape == (0,)


def wrong(**changes):
    return problems.get("lsgo2010/f4").batch.packed()._asdict() | changes


def changed(field: str, place, value) -> np.ndarray:
    array = getattr(problems.get("lsgo2010/f4").batch.packed(), field).copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("field", "place", "value", "words"),
    [
        ("variables", 3, 1000, "a variable that the points do not have"),
        ("variables", 3, -1, "a variable that the points do not have"),
        ("parts", (0, 0), 6, "unknown base function"),
        ("parts", (0, 1), 2, "transformations must be"),
        ("parts", (1, 2), 51, "exceeds the arrays"),
        ("parts", (1, 3), 0, "exceeds the arrays"),
        ("parts", (0, 3), 51, "exceeds the array of matrices"),
        ("parts", (0, 4), 1, "exceeds the array of matrices"),
        ("parts", (0, 4), -2, "exceeds the array of matrices"),
    ],
)
def test_wrong_descriptions_are_refused(field, place, value, words):
    packed, points = wrong(**{field: changed(field, place, value)}), np.zeros((2, 1000))
    with pytest.raises(ValueError, match=words):
        native.helper.Composition(**packed).evaluate(points)


def test_wrong_shapes_and_levels_are_refused():
    prepare = native.helper.Composition
    with pytest.raises(ValueError, match="one weight for each part"):
        prepare(**wrong(weights=np.ones(3)))
    with pytest.raises(ValueError, match="four rows"):
        prepare(**wrong(coefficients=np.ones((3, 1000))))
    with pytest.raises(ValueError, match="do not have"):
        prepare(**wrong()).evaluate(np.zeros((2, 999)))
    with pytest.raises(ValueError, match="level 'mmx' is not one"):
        prepare(**wrong()).evaluate(np.zeros((2, 1000)), "mmx")


def test_a_copy_through_pickle_gives_the_same_values():
    problem = problems.get("lsgo2013/f7")
    points = random_points(problem, 3)
    before = problem(points)  # the native helper holds it by now
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(problem))(points), before)
