"""Code of the user's by its name, the same way everywhere."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import mmes
from mmes.base.loading import load_objective
from mmes.evaluate.workers.pickling import pickled_classes
from mmes.lab.experiments.objectives import resolve
from mmes.replicas import Local
from mmes.strategies import MMES, get_strategy
from mmes.testing.hostile import sphere

NEIGHBOUR = """
def weight():
    return 2.0
"""
MODEL = """
from {neighbour} import weight
from mmes.strategies import MMES

def loss(x):
    return weight() * float(x @ x)

class Holder:
    @staticmethod
    def loss(x):
        return loss(x)

class Mine(MMES):
    name = "mine"

number = 3
"""


@pytest.fixture
def model(tmp_path, monkeypatch, request):
    """A file that imports its neighbour, under names that no other test has imported."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    tag = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
    neighbour, name = f"neighbour_{tag}", f"model_{tag}"
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / f"{neighbour}.py").write_text(NEIGHBOUR)
    (folder / f"{name}.py").write_text(MODEL.format(neighbour=neighbour))
    yield folder / f"{name}.py"
    sys.modules.pop(neighbour, None)
    sys.modules.pop(name, None)


def test_a_file_may_import_its_neighbour_in_run_and_in_bench(model) -> None:
    """Failed before in bench: the neighbour was not found."""
    x = np.ones(4)
    assert load_objective(f"{model}:loss")(x) == 8.0
    assert load_objective(f"{model}:Holder.loss")(x) == 8.0
    assert resolve(f"{model}:loss", 4)(x) == 8.0


def test_a_module_by_its_name(model, monkeypatch) -> None:
    monkeypatch.chdir(model.parent)
    assert load_objective(f"{model.stem}:loss")(np.ones(4)) == 8.0
    assert load_objective("math:sqrt")(9.0) == 3.0


def test_workers_can_import_it_too(model) -> None:
    f = load_objective(f"{model}:loss")
    options = {"seed": 1, "max_evaluations": 50}
    a, b = (mmes.minimize(f, np.ones(4), 0.5, workers=w, **options) for w in (None, 1))
    np.testing.assert_array_equal(a.x, b.x)


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("missing.py:f", "there is no file missing.py"),
        (":f", "name your own function as file.py:name"),
        ("math:", "name your own function as file.py:name"),
        ("no_such_package.module:f", "there is no module 'no_such_package.module'"),
        ("math:sqr", "there is no function 'sqr' in math; did you mean 'sqrt'"),
        ("math:pi", "math:pi is not a function but 3.14"),
    ],
)
def test_what_is_not_there_is_said(location, message) -> None:
    with pytest.raises(ValueError, match=message):
        load_objective(location)


def test_a_module_that_raises_and_one_whose_name_is_taken(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "raises_on_import.py").write_text("1 / 0")
    with pytest.raises(ValueError, match="cannot be imported: ZeroDivisionError: division"):
        load_objective(f"{tmp_path}/raises_on_import.py:f")
    (tmp_path / "json.py").write_text("def f(x): return 0.0")
    with pytest.raises(ValueError, match="'json' is also the name of another module; rename"):
        load_objective(f"{tmp_path}/json.py:f")


def test_a_strategy_by_its_place(model) -> None:
    strategy = get_strategy(f"{model}:Mine")
    assert issubclass(strategy, MMES)
    r = mmes.minimize(
        lambda x: float(x @ x), np.ones(4), 0.5, strategy=f"{model}:Mine", max_evaluations=50
    )
    assert r.strategy == "mine"
    with pytest.raises(TypeError, match=r"number must be a subclass of mmes.extend.AskTell"):
        get_strategy(f"{model}:number")
    with pytest.raises(ValueError, match=r"there is no class 'Minde' in .*did you mean 'Mine'"):
        get_strategy(f"{model}:Minde")


def test_a_strategy_of_the_user_on_the_command_line(model) -> None:
    words = ["run", f"{model}:loss", "--dim", "4", "--bounds", "-1,1", "--max-evaluations", "60"]
    done = subprocess.run(
        [sys.executable, "-m", "mmes", *words, "--strategy", f"{model}:Mine"],
        cwd=model.parent,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert '"strategy": "mine"' in (model.parent / "mmes-out" / "result.json").read_text()


def test_a_checkpoint_cannot_name_code_to_run(model, tmp_path, monkeypatch) -> None:
    trap = tmp_path / "trap.py"
    trap.write_text(
        textwrap.dedent(
            """
            import pathlib
            pathlib.Path(__file__).with_name("sprung").touch()
            """
        )
    )
    monkeypatch.chdir(tmp_path)
    run = mmes.Run(lambda x: float(x @ x), np.ones(4), 0.5, seed=1)
    state = run.state() | {"strategy": "trap.py:Mine"}
    with pytest.raises(mmes.CheckpointCorrupt, match=r"there is no strategy 'trap.py:Mine'"):
        mmes.Run.from_state(state, lambda x: float(x @ x))
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("by", ["file", "module"])
def test_a_strategy_leaves_the_path_as_it_was(model, monkeypatch, by) -> None:
    """Failed before: the working folder stayed in sys.path for good."""
    monkeypatch.chdir(model.parent)
    before = list(sys.path)
    where = model if by == "file" else model.stem
    assert get_strategy(f"{where}:Mine").name == "mine"
    with pytest.raises(ValueError, match="there is no class 'None_'"):
        get_strategy(f"{where}:None_")
    assert sys.path == before


def test_replicas_get_a_strategy_whose_folder_they_do_not_know(model) -> None:
    options = {"seed": 1, "max_evaluations": 60, "strategy": f"{model}:Mine"}
    a, b = (mmes.minimize(sphere, np.ones(4), 0.5, workers=w, **options) for w in (None, Local(1)))
    np.testing.assert_array_equal(a.x, b.x)


def test_strategies_of_ours_travel_by_their_name() -> None:
    assert len(pickled_classes(MMES)) < 200
