"""What a command leaves in its folder, and where that folder is."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

import mmes
from mmes.cli.output import output_folder, write_result

pytestmark = pytest.mark.usefixtures("folder")

SOMETIMES = """
import math

calls = 0


def loss(x):
    global calls
    calls += 1
    return math.nan if calls in (201, 204) else math.inf if calls == 202 else float(x @ x)
"""


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
def test_values_again_that_are_no_numbers_are_written_as_words(command, folder):
    """Failed before: "Out of range float values are not JSON compliant", and no result.json."""
    (folder / "sometimes.py").write_text(SOMETIMES)
    status, out, err = command(
        "run", "sometimes.py:loss", "--x0", "1,2,3", "--sigma0", 1, "--seed", 7, "--out", "o",
        "--reevaluations", 3, "--max-evaluations", 206, "--noise", "no", "--ftol", 0, "--xtol", 0,
    )  # fmt: skip
    assert status == 0, err
    again = json.loads((folder / "o" / "result.json").read_text())["reevaluated"]
    assert again["x"][0] == "nan"
    assert again["mean"][:2] == ["inf", "nan"]
    assert np.isfinite(again["x"][1:]).all()
    assert "(3 times, 1 without a finite value)" in out


def test_runs_at_the_same_time_have_folders_of_their_own(folder):
    """Failed before: the folder was made when a run ended, so that two could have the same."""
    taken = [output_folder(folder / "mmes-out", None) for _ in range(3)]
    assert [path.name for path in taken] == ["mmes-out", "mmes-out-2", "mmes-out-3"]
    assert all(path.is_dir() for path in taken)


def test_a_folder_in_which_nothing_was_written_goes(command, folder):
    words = ("run", "model.py:divides", "--x0", "1,2", "--sigma0", 1, "--quiet")
    assert command(*words)[0] == 3
    assert not (folder / "mmes-out").exists()
    assert command(*words, "--out", "mine")[0] == 3
    assert (folder / "mine").is_dir()


@pytest.mark.parametrize("workers", [(), ("--workers", 1)])
def test_an_objective_that_exits_is_a_failure(command, folder, workers):
    """Failed before: exit code 0, not a word, and nothing written."""
    words = ("run", "model.py:leaves", "--x0", "1,2,3", "--sigma0", 1, "--out", "o", *workers)
    status, out, err = command(*words)
    assert status == 3
    assert "SystemExit" in err
    assert "saved" in out
    assert json.loads((folder / "o" / "result.json").read_text())["nfev"] == 1


def test_an_objective_may_change_the_folder(command, folder):
    """Failed before: the result was written below the new folder, though it said "saved"."""
    (folder / "sub").mkdir()
    (folder / "moves.py").write_text("import os\nfrom model import wanders\nos.chdir('sub')\n")
    np.savetxt(folder / "x0.txt", [1.0, 2.0, 3.0])
    words = ("--x0", "x0.txt", "--sigma0", 1, "--max-evaluations", 30, "--out", "o")
    status, out, err = command("run", "moves.py:wanders", *words, "--checkpoint", "run.mmes")
    assert status == 0, err
    assert "o/ (result.json" in out
    assert (folder / "o" / "result.json").is_file()
    os.chdir(folder)
    words = ("--max-evaluations", 60, "--quiet")
    status, _, err = command("resume", "run.mmes", "moves.py:wanders", *words)
    assert status == 0, err
    found = json.loads((folder / "mmes-out" / "result.json").read_text())
    assert found["nfev"] == 60
    assert [path.name for path in (folder / "sub").iterdir()] == []


def test_a_result_is_not_overwritten_unless_that_is_asked_for(command, folder):
    """Failed before: the second run replaced the result of the first without a word."""
    words = ("run", "model.py:loss", "--x0", "1,2,3", "--sigma0", 1, "--quiet", "--out", "results")
    words = (*words, "--max-evaluations", 30)
    assert command(*words, "--seed", 1)[0] == 0
    first = (folder / "results" / "result.json").read_bytes()
    status, _, err = command(*words, "--seed", 2)
    assert status == 2
    assert "the folder results already contains a result (result.json); choose another" in err
    assert (folder / "results" / "result.json").read_bytes() == first
    assert command(*words, "--seed", 2, "--force")[0] == 0
    assert json.loads((folder / "results" / "result.json").read_text())["seed"] == 2


def test_a_run_that_goes_on_replaces_its_own_result(command, folder):
    words = ("run", "model.py:loss", "--x0", "1,2,3", "--sigma0", 1, "--quiet", "--out", "results")
    words = (*words, "--checkpoint", "run.mmes", "--resume", "auto", "--seed", 1)
    assert command(*words, "--max-evaluations", 30)[0] == 0
    assert command(*words, "--max-evaluations", 60)[0] == 0
    again = ("resume", "run.mmes", "model.py:loss", "--out", "results", "--quiet")
    assert command(*again, "--max-evaluations", 90)[0] == 0
    assert json.loads((folder / "results" / "result.json").read_text())["nfev"] == 90


class OnADevice:
    """What the library asks of a tensor, here of one whose numbers numpy cannot reach."""

    device = "cuda:0"

    def __init__(self, array):
        self._array = array

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self._array

    def __array__(self, *arguments, **options):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


def test_the_result_of_a_run_on_a_device_is_written(folder):
    """Failed before: neither np.save nor the size of a tensor worked."""
    result = mmes.minimize(lambda x: float(x @ x), np.ones(3), 1.0, seed=1, max_evaluations=30)
    (folder / "o").mkdir()
    x = result.x
    moved = replace(result, x=OnADevice(x), mean=OnADevice(result.mean))
    write_result(folder / "o", moved, "sphere")
    np.testing.assert_array_equal(np.load(folder / "o" / "x.npy"), x)
    np.testing.assert_array_equal(np.load(folder / "o" / "mean.npy"), result.mean)
    assert json.loads((folder / "o" / "result.json").read_text())["dimension"] == 3
