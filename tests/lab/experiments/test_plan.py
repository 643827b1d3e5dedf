"""Plans expand into runs with keys that name the run, and bad plans are answered clearly."""

from __future__ import annotations

import os
import pickle

import pytest

from mmes.lab.experiments.availability import refuse_mistakes
from mmes.lab.experiments.plan import (
    Objective,
    Plan,
    PlanError,
    Strategy,
    Trial,
    plan_from,
    read_plan,
    unique,
)

TOML = """
name = "trial"
problems = ["cigar", {name = "ellipsoid", alpha = 3, label = "Elli 3"}, "mine.py:cost"]
dimensions = [10, 20]
seeds = 3
max_evaluations = 1e5
target = 1e-8
start = [-2, 2]
sigma0 = 1
chosen = "MMES, l = 8"

[[strategy]]
name = "mmes"
[[strategy]]
name = "mmes"
label = "MMES, l = 8"
l = 8
"""


@pytest.fixture
def plan_file(tmp_path):
    (tmp_path / "mine.py").write_text("def cost(x):\n    return float((x * x).sum())\n")
    path = tmp_path / "plan.toml"
    path.write_text(TOML)
    return path


def test_a_plan_in_toml(plan_file):
    plan = read_plan(plan_file)
    runs = plan.runs()
    assert len(runs) == 3 * 2 * 2 * 3
    assert plan.seeds == (1, 2, 3)
    assert plan.max_evaluations == 100_000
    assert plan.objectives[1] == Objective("ellipsoid", "Elli 3", (("alpha", 3),))
    assert plan.strategies[1].options == (("l", 8),)
    assert plan.objectives[2].label == "mine.py:cost"
    assert plan.chosen == "MMES, l = 8"
    assert len({run.key for run in runs}) == len(runs)


def run_with(**changes) -> Trial:
    fields = {
        "strategy": Strategy("mmes"),
        "objective": Objective("cigar"),
        "dimension": 10,
        "seed": 1,
        "max_evaluations": 1000,
    }
    return Trial(**(fields | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"strategy": Strategy("lm-ma")},
        {"strategy": Strategy("mmes", options=(("l", 8),))},
        {"objective": Objective("discus")},
        {"objective": Objective("cigar", options=(("alpha", 2),))},
        {"dimension": 11},
        {"seed": 2},
        {"max_evaluations": 1001},
        {"target": None},
        {"target": 1e-9},
        {"start": None},
        {"start": (-1.0, 1.0)},
        {"sigma0": None},
        {"sigma0": 2.0},
        {"bounds": "clip"},
    ],
)
def test_whatever_decides_the_outcome_decides_the_key(changes):
    assert run_with(**changes).key != run_with().key


def test_labels_and_spelling_of_numbers_do_not_decide_the_key():
    same = run_with(strategy=Strategy("mmes", "MMES"), objective=Objective("cigar", "Cigar"))
    assert same.key == run_with().key
    assert run_with(sigma0=3, start=(-5, 5)).key == run_with().key
    assert pickle.loads(pickle.dumps(run_with())).key == run_with().key


def test_the_key_is_the_same_in_every_process_and_version():
    assert run_with().key == "22374933cd0c8c6c"


def test_a_function_counts_by_name_and_content_not_by_folder(tmp_path):
    keys = []
    for folder, text in (
        ("a", "def f(x): return 1"),
        ("b", "def f(x): return 1"),
        ("c", "f = abs"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(text)
        keys.append(run_with(objective=Objective(f"{tmp_path / folder / 'mine.py'}:f")).key)
    assert keys[0] == keys[1]
    assert keys[0] != keys[2]


def test_unique_keeps_the_first_of_each_key():
    labelled = run_with(strategy=Strategy("mmes", "other"))
    assert unique([run_with(), labelled, run_with(seed=2)]) == (run_with(), run_with(seed=2))


def grid(**changes) -> Plan:
    fields = {
        "strategies": (Strategy("mmes"),),
        "objectives": (Objective("cigar"),),
        "dimensions": (10,),
        "seeds": (1,),
        "max_evaluations": 100,
    }
    return Plan(**(fields | changes))


def test_a_problem_may_bring_its_own_dimension():
    plan = grid(objectives=(Objective("lsgo2013/f13", dimension=905), Objective("cigar")))
    assert [run.dimension for run in plan.runs()] == [905, 10]


@pytest.mark.parametrize(
    ("bounds", "treatments"),
    [("recommended", ["clip", "none"]), ("none", ["none"] * 2), ("smooth", ["smooth"] * 2)],
)
def test_a_problem_brings_its_box_treatment_unless_the_plan_names_one(bounds, treatments):
    objectives = Objective("lsgo2013/f13", dimension=905), Objective("cigar")
    assert [run.bounds for run in grid(objectives=objectives, bounds=bounds).runs()] == treatments
    assert grid(objectives=objectives).bounds == "recommended"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"strategies": ()}, "strategies is empty"),
        ({"seeds": (1, 1)}, "seeds contains a value twice"),
        ({"dimensions": (0,)}, "dimensions must be an integer of at least 1, not 0"),
        ({"dimensions": (True,)}, "dimensions must be an integer"),
        ({"seeds": (-1,)}, "seeds must be an integer of at least 0, not -1"),
        ({"max_evaluations": 0}, "max_evaluations must be an integer of at least 1, not 0"),
        ({"seeds": (2**63,)}, r"seeds must be at most 2\^63 - 1 = 9223372036854775807, not 9223"),
        ({"max_evaluations": 2**63}, "max_evaluations must be at most"),
        ({"start": (0.0, float("inf"))}, "start must be an interval"),
        ({"target": float("nan")}, "target must be a finite number"),
        ({"start": (5.0, -5.0)}, "start must be an interval"),
        ({"sigma0": 0.0}, "sigma0 must be positive"),
        (
            {"bounds": "wrap"},
            "bounds must be one of recommended, none, smooth, clip, reflect, not 'wrap'",
        ),
        ({"chosen": "CMA"}, "chosen must be one of mmes, not 'CMA'"),
        (
            {"strategies": (Strategy("mmes"), Strategy("mmes", options=(("l", 2),)))},
            "two entries are called 'mmes'",
        ),
    ],
)
def test_bad_plans_are_refused(changes, sentence):
    with pytest.raises(PlanError, match=sentence):
        grid(**changes)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"max_evaluations": 10}, "problems is missing"),
        ({"problems": ["cigar"]}, "max_evaluations is missing"),
        ({"problems": ["cigar"], "max_evaluations": 10, "budget": 1}, "unknown key 'budget'"),
        (
            {"problems": ["cigar"], "max_evaluations": 9, "seeds": 1e12},
            "seeds must be at most 1,000",
        ),
        (
            {"problems": ["cigar"], "max_evaluations": 9, "seeds": [2**64]},
            "seeds must be at most 2",
        ),
        ({"problems": ["cigar"], "max_evaluations": 9, "start": [True, 5]}, "start must be"),
        (
            {"problems": [{"name": "cigar", "label": "=1+1"}], "max_evaluations": 9},
            "must be printable and not begin with =, .* not '=1\\+1'",
        ),
        ({"problems": "cigar", "max_evaluations": 10}, "problems must be a list"),
        ({"problems": [3], "max_evaluations": 10}, "problem needs a name"),
        ({"problems": ["cigar"], "max_evaluations": "many"}, "max_evaluations must be an integer"),
        ({"problems": ["cigar"], "max_evaluations": 1.5}, "max_evaluations must be an integer"),
        ({"problems": ["cigar"], "max_evaluations": 9, "start": [1]}, "start must be"),
        ({"problems": ["cigar"], "max_evaluations": 9, "sigma0": "x"}, "sigma0 must be a number"),
        ({"problems": ["none.py:f"], "max_evaluations": 9}, "there is no file none.py"),
        ({"problems": ["cigar"], "max_evaluations": 9, "strategy": {}}, r"\[\[strategy\]\]"),
        (
            {"problems": [{"name": "cigar", "a": []}], "max_evaluations": 9},
            "option a must be a number",
        ),
    ],
)
def test_bad_tables_are_refused(data, sentence):
    with pytest.raises(PlanError, match=sentence):
        plan_from(data)


def test_the_default_may_be_compared_by_its_name():
    """Failed before: there is no strategy 'auto' here."""
    auto = Strategy("auto", options=(("mixing", 2),))
    refuse_mistakes(grid(strategies=(auto,), dimensions=(200,)).runs())
    with pytest.raises(PlanError, match="it \\(here active-cma\\) has no option 'mixing'"):
        refuse_mistakes(grid(strategies=(auto,), dimensions=(200, 10)).runs())


def test_broken_files_are_named(tmp_path):
    with pytest.raises(PlanError, match="there is no plan file"):
        read_plan(tmp_path / "none.toml")
    os.mkfifo(tmp_path / "pipe.toml")
    for endless in (tmp_path / "pipe.toml", "/dev/zero"):  # failed before: it hung
        with pytest.raises(PlanError, match="there is no plan file"):
            read_plan(endless)
    with open(tmp_path / "large.toml", "wb") as file:
        file.truncate(10**8)
    with pytest.raises(PlanError, match="too large for a plan"):
        read_plan(tmp_path / "large.toml")
    (tmp_path / "bad.toml").write_text("name = ")
    with pytest.raises(PlanError, match=r"bad\.toml is not valid TOML"):
        read_plan(tmp_path / "bad.toml")


def test_unique_keeps_the_first_of_each_in_order():
    first, second = run_with(seed=1), run_with(seed=2)
    assert unique([first, second, first]) == (first, second)


def test_a_problem_with_its_own_dimension_needs_none_in_the_plan():
    plan = plan_from({"problems": ["lsgo2013/f13", "sphere"], "dimensions": 7, "seeds": 1,
                      "max_evaluations": 10})  # fmt: skip
    assert [run.dimension for run in plan.runs()] == [905, 7]
