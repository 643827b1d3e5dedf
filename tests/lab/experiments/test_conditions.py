"""Constraints and integers in plans: from the file to the report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mmes.lab.experiments.analysis.overview import overview
from mmes.lab.experiments.execute import perform
from mmes.lab.experiments.objectives import conditions
from mmes.lab.experiments.plan import Objective, Strategy, Trial, plan_from
from mmes.lab.experiments.results.store import Store, outcome_of

MINE = """
import numpy as np

def cost(x):
    return float(np.sum(x * x))

def costs(X):
    return np.sum(X * X, axis=1)

def limit(x):
    return [1.0 - x[0], 0.5 - x[1]]

def limits(X):
    return np.column_stack((1.0 - X[:, 0], 0.5 - X[:, 1]))

def never(x):
    return 1.0 + x[0] ** 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def trial(folder: Path, function: str, **options: object) -> Trial:
    return Trial(
        Strategy("active-cma"),
        Objective(f"{folder / 'mine.py'}:{function}", "mine", tuple(sorted(options.items()))),  # type: ignore[arg-type]
        dimension=5,
        seed=1,
        max_evaluations=3000,
        target=1.2501,
        sigma0=1.0,
    )


def test_a_constrained_problem_is_solved_and_its_violation_stored(folder: Path) -> None:
    run = trial(folder, "cost", constraints="limit")
    outcome = perform(run)
    assert outcome.reached
    assert outcome.violation is not None
    assert outcome.violation <= 1e-6
    assert 1.25 - 1e-5 < outcome.best <= 1.2501
    store = Store(folder / "store")
    store.write(run, outcome)
    assert store.outcomes()[run.key].violation == outcome.violation


def test_constraints_of_a_batch_give_the_same(folder: Path) -> None:
    one = perform(trial(folder, "cost", constraints="limit"))
    many = perform(trial(folder, "costs", constraints="limits", vectorized=True))
    assert one.evaluations == many.evaluations
    assert one.best == pytest.approx(many.best, rel=1e-12)


def test_an_infeasible_run_reaches_no_target(folder: Path) -> None:
    outcome = perform(trial(folder, "cost", constraints="never"))
    assert outcome.status == "INFEASIBLE"
    assert outcome.best == np.inf
    assert not outcome.reached


def test_integers_are_rounded(folder: Path) -> None:
    name = f"{folder / 'mine.py'}:cost"
    assert conditions(name, {"integers": "all"}) == {"integers": True}
    assert conditions(name, {"integers": "0,2"}) == {"integers": [0, 2]}
    outcome = perform(trial(folder, "cost", constraints="limit", integers="0,1"))
    assert outcome.best == pytest.approx(2.0, abs=1e-3)  # x_1 >= 0.5 is 1


def test_the_report_has_a_table_of_violations(folder: Path) -> None:
    plain, limited = trial(folder, "cost"), trial(folder, "cost", constraints="limit")
    found = overview([limited], {limited.key: perform(limited)}, "active-cma")
    assert "Violations" in [table.title for table in found.tables]
    found = overview([plain], {plain.key: perform(plain)}, "active-cma")
    assert "Violations" not in [table.title for table in found.tables]


def test_files_of_older_versions_have_no_violation(folder: Path) -> None:
    run = trial(folder, "cost")
    store = Store(folder / "store")
    store.write(run, perform(run))
    (row,) = store.rows()
    del row["violation"]
    assert outcome_of(row).violation is None


def test_a_plan_names_them(folder: Path) -> None:
    problem = {"name": "mine.py:cost", "constraints": "limit", "integers": "0", "dimension": 4}
    plan = plan_from({"problems": [problem], "max_evaluations": 100, "seeds": 1}, folder)
    assert dict(plan.objectives[0].options) == {"constraints": "limit", "integers": "0"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"constraints": "other.py:g"}, "must name a function of the same file, not 'other.py:g'"),
        ({"integers": "x"}, "must be 'all' or indices such as '0,1,2', not 'x'"),
    ],
)
def test_mistakes_are_named(folder: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        perform(trial(folder, "cost", **options))


def test_competitors_refuse_them(folder: Path) -> None:
    run = trial(folder, "cost", constraints="limit")
    competitor = Trial(Strategy("mos"), run.objective, 5, 1, 500)
    with pytest.raises(ValueError, match="cannot be combined with the strategy 'mos'"):
        perform(competitor)
