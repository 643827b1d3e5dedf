"""``mmes resume``: with the strategy and the problem that the run had, and no others."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import mmes
from mmes import checkpoint

pytestmark = pytest.mark.usefixtures("folder")

START = ("--x0", "1,2,3", "--sigma0", "1", "--seed", "7", "--quiet")
MINE = """
from mmes.strategies import MMES


class Mine(MMES):
    name = "mine"
"""
LATE = """
calls = 0


def loss(x):
    global calls
    calls += 1
    return None if calls > 100 else float(x @ x)


def rows(points):
    values = [loss(x) for x in points]
    return None if None in values else values
"""


def notes():
    return checkpoint.read("run.mmes")[0]["notes"]


@pytest.fixture
def mine(command, folder):
    """Leave a checkpoint of a run by a strategy of the user's own."""
    (folder / "searcher.py").write_text(MINE)
    words = ("run", "model.py:loss", *START, "--strategy", "searcher.py:Mine")
    assert command(*words, "--max-evaluations", 300, "--out", "whole")[0] == 0
    limited = (*words, "--max-evaluations", 100, "--out", "part", "--checkpoint", "run.mmes")
    assert command(*limited)[0] == 0


def test_a_strategy_of_your_own_is_named_again(command, mine):
    """Failed before: there was no flag for it, and the parts did "not fit together"."""
    assert notes()["strategy"] == "searcher.py:Mine"
    status, _, err = command("resume", "run.mmes")
    assert status == 2
    assert "mmes resume run.mmes model.py:loss --strategy searcher.py:Mine" in err
    status, _, err = command("resume", "run.mmes", "model.py:loss")
    assert status == 2
    assert "name your strategy 'mine' again" in err
    assert "mmes resume run.mmes model.py:loss --strategy searcher.py:Mine" in err
    given = ("resume", "run.mmes", "model.py:loss", "--strategy", "searcher.py:Mine", "--quiet")
    status, _, err = command(*given, "--max-evaluations", 300, "--out", "part")
    assert status == 0, err
    assert np.array_equal(np.load("whole/x.npy"), np.load("part/x.npy"))
    assert notes()["strategy"] == "searcher.py:Mine"


def test_the_strategy_is_part_of_the_command_to_go_on(command, mine):
    given = ("resume", "run.mmes", "model.py:divides", "--strategy", "searcher.py:Mine", "--quiet")
    status, _, err = command(*given, "--max-evaluations", 300)
    assert status == 3
    assert "to continue: mmes resume run.mmes model.py:divides --strategy searcher.py:Mine\n" in err


def test_a_strategy_without_a_note_is_asked_for(command, mine):
    state, arrays = checkpoint.read("run.mmes")
    arrays = {name: np.array(array) for name, array in arrays.items()}
    checkpoint.write("run.mmes", state | {"notes": {}}, arrays)
    status, _, err = command("resume", "run.mmes", "model.py:loss")
    assert status == 2
    assert "--strategy file.py:Class" in err
    with pytest.raises(mmes.CheckpointCorrupt, match="your own strategy, pass it again"):
        mmes.resume("run.mmes", lambda x: float(x @ x))


def test_a_strategy_of_your_own_with_a_name_of_ours_is_asked_for_too(command, folder):
    (folder / "namesake.py").write_text(MINE.replace('"mine"', '"mmes"'))
    words = ("run", "model.py:loss", *START, "--strategy", "namesake.py:Mine", "--out", "o")
    assert command(*words, "--max-evaluations", 100, "--checkpoint", "run.mmes")[0] == 0
    status, _, err = command("resume", "run.mmes", "model.py:loss")
    assert status == 2
    assert "name your strategy 'mmes' again" in err


def test_another_strategy_is_refused(command, mine):
    given = ("resume", "run.mmes", "model.py:loss", "--strategy", "mmes", "--quiet")
    status, _, err = command(*given, "--max-evaluations", 300)
    assert status == 4
    assert "strategy is 'mmes' here and was 'mine'" in err


@pytest.fixture
def twelve(command):
    """Leave a checkpoint of a built-in problem with twelve variables."""
    run = ("run", "cigar", "--dim", 12, "--seed", 2, "--quiet", "--max-evaluations", 150)
    assert command(*run, "--checkpoint", "run.mmes", "--out", "o")[0] == 0


def test_another_problem_has_the_dimension_of_the_checkpoint(command, twelve):
    """Failed before: it was made with 1000 variables, which fit no candidate."""
    more = ("--max-evaluations", 400, "--quiet", "--out", "o")
    assert command("resume", "run.mmes", "Sphere", *more)[0] == 0
    assert json.loads(Path("o/result.json").read_text())["dimension"] == 12
    assert notes() == {"target": "Sphere", "problem_options": {"dimension": 12}}
    status, _, err = command("resume", "run.mmes", "lsgo2013/f1", *more)
    assert status == 2
    assert "lsgo2013/f1 has 1000 variables, but the checkpoint is of a run with 12" in err


def test_the_notes_change_after_a_generation_only(command, twelve):
    """Failed before: a target that evaluated nothing took the place of the right one."""
    more = ("--max-evaluations", 400, "--quiet", "--out", "o")
    before = notes()
    assert before == {"target": "cigar", "problem_options": {"dimension": 12}}
    assert command("resume", "run.mmes", "model.py:divides", *more)[0] == 3
    assert notes() == before
    assert command("resume", "run.mmes", *more)[0] == 0
    assert notes() == before


@pytest.mark.parametrize(
    ("function", "flags", "place"),
    [
        ("loss", (), r"candidate \d+ of generation \d\d"),
        ("loss", ("--workers", 1), r"candidate \d+ of generation \d\d"),
        ("rows", ("--vectorized",), r"the candidates of generation \d\d"),
        ("rows", ("--vectorized", "--workers", 1), r"the candidates of generation \d\d"),
    ],
)
def test_what_is_no_value_does_not_cost_what_was_found(command, folder, function, flags, place):
    """Failed before: the result of all evaluations was lost, and where it happened not said."""
    (folder / "late.py").write_text(LATE)
    words = ("run", f"late.py:{function}", *START, *flags, "--checkpoint", "run.mmes")
    status, _, err = command(*words, "--out", "o")
    assert status == 3
    assert re.search(rf"returned None \(a NoneType\) \({place}\)\n", err), err
    assert "to continue: mmes resume run.mmes" in err
    assert 90 <= json.loads((folder / "o" / "result.json").read_text())["nfev"] <= 101
