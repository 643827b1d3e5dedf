"""Both CEC suites against values recorded from the official MATLAB code."""

import hashlib
import json
import pickle
from importlib import resources

import numpy as np
import pytest

from mmes import problems
from mmes.problems.composition import Base

RELATIVE, AT_OPTIMUM = 1e-11, 1e-6
DATA = resources.files("mmes.problems") / "data"
SUITES = [name for name in problems.names() if name.startswith("lsgo")]


def test_batch_values_are_the_official_ones(golden):
    problem, points, values, _ = golden
    np.testing.assert_allclose(problem(points), values, rtol=RELATIVE, atol=AT_OPTIMUM)


def test_single_values_are_the_official_ones(golden):
    problem, points, values, _ = golden
    singles = [problem(x) for x in points]
    assert all(isinstance(value, float) for value in singles)
    np.testing.assert_allclose(singles, values, rtol=RELATIVE, atol=AT_OPTIMUM)


def test_reference_values_are_the_official_ones(golden):
    problem, points, values, _ = golden
    reference = problem.batch.reference(points)
    np.testing.assert_allclose(reference, values, rtol=RELATIVE, atol=AT_OPTIMUM)


def test_box_dimension_and_optimum(golden):
    problem, _, _, recorded = golden
    assert problem.dimension == recorded["dim"]
    assert set(problem.lower) == {recorded["lb"]}
    assert set(problem.upper) == {recorded["ub"]}
    if problem.name == "lsgo2013/f14":
        assert problem.optimum is None
        assert problem.minimum is None
        return
    x = problem.optimum
    assert np.all((problem.lower <= x) & (x <= problem.upper))
    moved = x + 1e-3 * np.eye(problem.dimension)[::97]
    assert np.all(problem(moved) > problem(x))


@pytest.mark.parametrize("suite", ["lsgo2010", "lsgo2013"])
def test_packaged_arrays_are_the_official_ones(suite):
    expected = json.loads((DATA / suite / "arrays.json").read_text())
    with (DATA / suite / f"{suite}.npz").open("rb") as stream:
        arrays = np.load(stream, allow_pickle=False)
        assert set(arrays.files) == set(expected)
        for name, about in expected.items():
            array = np.ascontiguousarray(arrays[name])
            assert list(array.shape) == about["shape"]
            assert array.dtype.newbyteorder("<").str == about["dtype"]
            assert hashlib.sha256(array.tobytes()).hexdigest() == about["sha256"]


@pytest.mark.parametrize(
    ("suite", "sha256"),
    [
        ("lsgo2010", "5b8b870326f97ab99f251518be4478cd4c059cdae14efff7621b6d0c79d486b0"),
        ("lsgo2013", "e51c0c1c9b95715c302a799ec0f2fd7fe627758e40177ee88f5e13a6442d3902"),
    ],
)
def test_packaged_files_are_the_received_ones(suite, sha256):
    assert hashlib.sha256((DATA / suite / f"{suite}.npz").read_bytes()).hexdigest() == sha256
    assert "NOTICE" in [file.name for file in (DATA / suite).iterdir()]


@pytest.mark.parametrize("name", SUITES)
def test_groups_cover_the_variables(name):
    problem = problems.get(name)
    details = problem.details
    held = np.concatenate([*details["groups"], details["separable"]])
    overlap = 19 * 5 if problem.dimension == 905 else 0
    assert len(held) == problem.dimension + overlap
    assert set(held) == set(range(problem.dimension))
    assert details["group_sizes"] == tuple(len(group) for group in details["groups"])
    assert len(details["weights"]) == len(details["groups"])


@pytest.mark.parametrize(
    "name", ["lsgo2010/f7", "lsgo2010/f14", "lsgo2013/f5", "lsgo2013/f11", "lsgo2013/f14"]
)
def test_a_group_depends_on_its_variables_alone(name):
    """Moving a variable changes the terms of the groups that list it, and no others."""
    problem = problems.get(name)
    x = np.tile(np.random.Generator(np.random.Philox(1)).uniform(*problem.bounds), (2, 1))
    groups = problem.details["groups"]
    variable = groups[-1][-1]
    x[1, variable] += 0.5
    for part in problem.batch.parts:
        first, second = part(x)
        assert (first != second) == (variable in part.index)


def test_rest_of_2013_f7_is_a_plain_sphere():
    assert [part.base for part in problems.get("lsgo2013/f7").batch.parts] == (
        [Base.SCHWEFEL] * 7 + [Base.SPHERE]
    )


@pytest.mark.parametrize("name", ["lsgo2010/f3", "lsgo2013/f7"])
def test_strict_gives_nan_outside_the_box(name):
    strict, plain = problems.get(name, strict=True), problems.get(name)
    x = np.tile(plain.upper, (3, 1))
    x[1, 5] += 1e-9
    x[2, 7] = plain.lower[7] - 1e-9
    assert np.isfinite(plain(x)).all()
    np.testing.assert_array_equal(np.isnan(strict(x)), [False, True, True])
    assert strict(x)[0] == plain(x)[0]


def test_options_and_names_are_checked():
    with pytest.raises(TypeError, match="has no option 'dimension'; it takes strict"):
        problems.get("lsgo2010/f3", dimension=500)
    with pytest.raises(TypeError, match="strict must be True or False, not 1"):
        problems.get("lsgo2010/f3", strict=1)
    with pytest.raises(ValueError, match="no problem named 'lsgo2013/f16'; did you mean"):
        problems.get("lsgo2013/f16")


def test_pickled_problem_has_the_same_values():
    problem = problems.get("lsgo2013/f13", strict=True)
    x = np.zeros((2, 905))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(problem))(x), problem(x))


def test_nan_and_huge_coordinates_give_nan_or_inf_quietly(golden):
    problem, points, _, _ = golden
    x = points[-2:].copy()
    x[0, 11] = np.nan
    x[1] = 1e200
    values = problem(x)
    assert np.isnan(values[0])
    assert not np.isfinite(values[1]) or problem.batch.parts[0].base is Base.ACKLEY
