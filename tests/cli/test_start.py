"""Where a run from the command line starts: numbers and files of bounds."""

import numpy as np
import pytest

import mmes
from mmes import checkpoint

pytestmark = pytest.mark.usefixtures("folder")

RUN = ("run", "model.py:loss", "--seed", 3, "--max-evaluations", 40, "--quiet", "--out", "o")


def box(command, *flags):
    status, _, err = command(*RUN, *flags, "--checkpoint", "run.mmes")
    assert status == 0, err
    _, arrays = checkpoint.read("run.mmes")
    return arrays["lower"].tolist(), arrays["upper"].tolist()


@pytest.mark.parametrize(
    ("rows", "lower", "upper"),
    [
        ([[0, 1], [2, 3]], [0, 2], [1, 3]),  # one pair per variable
        ([[-5, -5], [5, 5]], [-5, -5], [5, 5]),  # only rows give a box
        ([[-1, 1], [-2, 2]], [-1, -2], [1, 2]),
    ],
)
def test_a_file_of_two_by_two_is_read_as_in_python(command, rows, lower, upper):
    """Failed before: [[0, 1], [2, 3]] were lower bounds 0, 1 and upper bounds 2, 3."""
    np.save("box.npy", np.array(rows, dtype=float))
    assert box(command, "--bounds", "box.npy") == (lower, upper)
    pairs = tuple(map(tuple, rows))
    result = mmes.minimize(lambda x: float(x @ x), bounds=pairs, seed=3, max_evaluations=40)
    assert np.array_equal(np.load("o/x.npy"), result.x)


@pytest.mark.parametrize("turned", [False, True])
def test_a_file_has_two_rows_or_two_columns(command, turned):
    rows = np.array([[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]])
    np.save("box.npy", rows.T if turned else rows)
    assert box(command, "--bounds", "box.npy") == ([-1, -2, -3], [1, 2, 3])


def test_one_side_may_be_open(command):
    """Failed before: -inf,5 was taken for a flag."""
    flags = ("--x0", "1,2", "--sigma0", 1, "--bounds", "-inf,5")
    assert box(command, *flags) == ([-np.inf, -np.inf], [5, 5])
