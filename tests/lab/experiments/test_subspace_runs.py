"""Sparse spectral clustering as runs of the laboratory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io

from mmes.cli import main
from mmes.lab.clustering import load_graph, sparse_basis
from mmes.lab.experiments.availability import METHODS
from mmes.lab.experiments.execute import perform
from mmes.lab.experiments.plan import Objective, Strategy, Trial, read_plan
from mmes.lab.experiments.results.store import Store


def trial(strategy: Strategy, beta: float, most: int, name: str = "colon") -> Trial:
    objective = Objective(f"clustering/{name}", "", (("beta", beta),))
    return Trial(strategy, objective, 0, 1, most, None, None, None)


def test_a_run_is_what_sparse_basis_gives():
    graph = load_graph("colon")
    result = perform(trial(Strategy("mmes"), 0.01, 3000))
    # The paper's settings but for the budget, at which this run ends.
    again = perform(trial(Strategy("mmes"), 0.01, 3000))
    full = sparse_basis(graph.laplacian(), graph.n_clusters, 0.01, seed=1)
    assert (result.best, result.evaluations) == (again.best, 3000)
    assert full.value < result.best < 2 * full.value


def test_settings_of_the_search_are_options_of_the_strategy():
    other = Strategy("mmes", "", (("init", "spectral"), ("min_sigma", 1e-3)))
    result = perform(trial(other, 1e-4, 30_000))
    assert result.evaluations < perform(trial(Strategy("mmes"), 1e-4, 30_000)).evaluations
    key = trial(Strategy("mmes"), 1e-4, 30_000).key
    assert trial(other, 1e-4, 30_000).key != key


def test_all_methods_start_at_the_same_point():
    found = {m: perform(trial(Strategy(m), 1e-4, 30_000, "GLIOMA")).best for m in METHODS}
    assert found["mmes"] == pytest.approx(0.214111, rel=5e-6)
    assert found["gsc"] == pytest.approx(found["smoothed"], rel=1e-5)


PLAN = """
problems = [{ name = "clustering/GLI_85.mat", beta = 0.01, label = "GLI-85" }]
seeds = 1
max_evaluations = 300
target = "none"
[[strategy]]
name = "mmes"
[[strategy]]
name = "gsc"
"""


@pytest.fixture
def plan(tmp_path):
    rng = np.random.default_rng(1)
    features = np.vstack([rng.standard_normal((10, 4)) + shift for shift in (5, -5)])
    scipy.io.savemat(tmp_path / "GLI_85.mat", {"X": features, "Y": np.repeat([1, 2], 10)})
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def test_a_file_of_the_user_in_a_plan(plan, tmp_path, capsys):
    assert main(["bench", str(plan), "--out", str(tmp_path / "out"), "--workers", "1"]) == 0
    assert "GLI-85" in capsys.readouterr().out
    rows = Store(tmp_path / "out" / "runs").rows()
    assert {row["strategy"] for row in rows} == {"mmes", "gsc"}
    # The number of variables is the problem's own, and no folder is kept.
    assert {(row["dimension"], row["problem"]) for row in rows} == {
        (20 * 2, "clustering/GLI_85.mat")
    }


def test_a_missing_file_is_named(plan, tmp_path):
    (tmp_path / "GLI_85.mat").unlink()
    with pytest.raises(ValueError, match=r"there is no file GLI_85.mat next to the plan"):
        read_plan(plan)


def test_the_section_makes_chosen_runs_only(tmp_path, capsys):
    given = ["reproduce", "clustering", "--out", str(tmp_path), "--workers", "1", "--no-report"]
    chosen = ["--problem", "clustering/ALLAML", "--strategy", "GSC", "--seeds", "1"]
    assert main([*given, *chosen]) == 0
    text = capsys.readouterr().out
    assert "2 runs finished" in text
    assert "spread and effort" in text
