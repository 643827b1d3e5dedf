"""Names of a plan become problems: built-in ones, and functions of the user's."""

from __future__ import annotations

import numpy as np
import pytest

from mmes.lab.experiments.objectives import fingerprint, resolve


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import numpy as np\n"
        "def one(x):\n"
        "    '''Sum of squares.'''\n"
        "    return float(x @ x)\n"
        "def many(X):\n"
        "    return (X * X).sum(axis=1)\n"
        "number = 3\n"
    )
    return path


def test_a_function_of_one_point_and_one_of_many_agree(mine):
    points = np.arange(6.0).reshape(2, 3)
    single = resolve(f"{mine}:one", 3)
    batch = resolve(f"{mine}:many", 3, {"vectorized": True, "lower": -1.0, "upper": 2.0})
    assert single(points).tolist() == batch(points).tolist() == [5.0, 50.0]
    assert single.description == "Sum of squares."
    assert batch.lower.tolist() == [-1.0] * 3
    assert single.minimum is None


def test_a_function_of_a_module_is_known_by_its_name():
    assert fingerprint("math:sqrt") == "math:sqrt"


def test_a_built_in_problem_and_its_options():
    assert resolve("ellipsoid", 5, {"alpha": 2})(np.ones(5)) < resolve("ellipsoid", 5)(np.ones(5))
    assert resolve("lsgo2013/f13", 905).dimension == 905


def test_every_run_has_its_own_rotation_unless_the_plan_gives_one():
    x = np.arange(1.0, 6.0)
    one, two = (resolve("rotated_cigar", 5, seed=s)(x) for s in (1, 2))
    assert one != two
    fixed = [resolve("rotated_cigar", 5, {"seed": 7}, seed=s)(x) for s in (1, 2)]
    assert fixed[0] == fixed[1]


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("nothing", {}, "no problem named 'nothing'"),
        ("lsgo2013/f13", {}, "905 variables, not 10"),
        ("missing.py:f", {}, "there is no file missing.py"),
        ("no_such_package.module:f", {}, "there is no module 'no_such_package.module'"),
        ("math:nothing", {}, "there is no function 'nothing' in math"),
        ("math:sqrt", {"colour": 1}, "unknown setting 'colour'"),
        ("math:sqrt", {"lower": 5, "upper": 1}, "lower 5.0 must be smaller"),
    ],
)
def test_mistakes_are_answered_with_a_sentence(name, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        resolve(name, 10, options)


def test_something_that_is_no_function_is_refused(mine):
    with pytest.raises(ValueError, match="is not a function but 3"):
        resolve(f"{mine}:number", 3)
