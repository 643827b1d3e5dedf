"""A real run: repeatable, with everything recorded."""

from __future__ import annotations

import numpy as np
import pytest

import mmes
from mmes import problems
from mmes.lab.experiments.execute import perform, starting_point
from mmes.lab.experiments.plan import Objective, Strategy, Trial
from mmes.run.noise import NoiseWatch


def make(**changes) -> Trial:
    fields = {
        "strategy": Strategy("mmes", "MMES", (("mixing", 2),)),
        "objective": Objective("sphere"),
        "dimension": 20,
        "seed": 5,
        "max_evaluations": 20_000,
    }
    return Trial(**(fields | changes))


def test_a_run_is_what_minimize_gives():
    outcome = perform(make())
    problem = problems.get("sphere", dimension=20)
    place = starting_point(make(), problem)
    direct = mmes.minimize(
        problem.batch,
        place.x0,
        place.sigma0,
        vectorized=True,
        strategy="mmes",
        seed=5,
        mixing=2,
        target=1e-8,
        max_evaluations=20_000,
        noise="off",
    )
    assert (outcome.best, outcome.evaluations) == (direct.fun, direct.nfev)
    assert outcome.reached
    assert outcome.status == "TARGET_REACHED"
    assert outcome.trace_best[-1] == outcome.best
    assert outcome.trace_evaluations[-1] == outcome.evaluations
    assert outcome.trace_sigma.shape == outcome.trace_best.shape
    assert outcome.versions["mmes"] == mmes.__version__
    assert 0.0 < outcome.objective_seconds <= outcome.cpu_seconds


def test_evaluations_are_counted_as_in_the_papers(monkeypatch, tmp_path):
    """Failed before: evaluations that ask whether the objective is noisy were counted, too."""
    asked = []

    def answer(self, values, sigma):
        asked.append(values.all.size)
        return False

    monkeypatch.setattr(NoiseWatch, "suspects", lambda self, sigma, reason: True)
    monkeypatch.setattr(NoiseWatch, "answer", answer)
    assert perform(make(max_evaluations=500)).evaluations == 500
    assert not asked
    (tmp_path / "mine.py").write_text("def cost(x):\n    return float(x @ x)\n")
    perform(make(max_evaluations=500, objective=Objective(f"{tmp_path}/mine.py:cost")))
    assert asked  # a function of the user's may be noisy


def test_a_spent_budget_is_no_success():
    outcome = perform(make(max_evaluations=100))
    assert (outcome.evaluations, outcome.reached, outcome.cost) == (100, False, float("inf"))


def test_starts_follow_the_seed_and_the_interval():
    problem = problems.get("sphere", dimension=20)
    first = starting_point(make(), problem)
    assert first.sigma0 == 3.0
    assert np.all(np.abs(first.x0) <= 5.0)
    assert first.x0.tolist() == starting_point(make(max_evaluations=9), problem).x0.tolist()
    assert first.x0.tolist() != starting_point(make(seed=6), problem).x0.tolist()
    box = starting_point(make(start=None, sigma0=None), problem)
    width = problem.upper - problem.lower
    assert np.all((box.x0 >= problem.lower) & (box.x0 <= problem.upper))
    assert box.sigma0 == pytest.approx(0.3 * width[0])
    assert box.scale is None


def test_bounds_hold_for_every_evaluation(tmp_path):
    log = tmp_path / "seen.txt"
    (tmp_path / "mine.py").write_text(
        f"def cost(X):\n"
        f"    with open({str(log)!r}, 'a') as f: f.write(f'{{abs(X).max()}}\\n')\n"
        f"    return ((X - 2.0) ** 2).sum(axis=1)\n"
    )
    objective = Objective(
        f"{tmp_path / 'mine.py'}:cost",
        options=(("lower", -1.0), ("upper", 1.0), ("vectorized", True)),
    )
    outcome = perform(
        make(objective=objective, bounds="clip", start=None, sigma0=None, max_evaluations=8000)
    )
    assert max(map(float, log.read_text().split())) <= 1.0
    assert 20.0 <= outcome.best < 40.0


def test_restarts_are_counted():
    run = make(
        strategy=Strategy("mmes", "MMES", (("restarts", 2),)),
        target=None,
        max_evaluations=40_000,
    )
    assert perform(run).restarts == 2


def test_a_run_does_not_end_by_stagnation_unless_it_may_restart(tmp_path):
    """A flat function stagnates at once; another rule must end the run."""
    (tmp_path / "mine.py").write_text("def flat(x):\n    return 1.0\n")
    objective = Objective(f"{tmp_path / 'mine.py'}:flat")
    assert perform(make(objective=objective)).status == "MAX_EVALUATIONS"
    chosen = Strategy("mmes", "MMES", (("stagnation_window", 20),))
    assert perform(make(objective=objective, strategy=chosen)).status == "FLAT"
