"""The documented example is a plan that runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mmes.lab.experiments.availability import missing_pieces
from mmes.lab.experiments.execute import perform
from mmes.lab.experiments.plan import read_plan
from paths import ROOT

EXAMPLE = ROOT / "examples" / "comparison" / "plan.toml"


def test_the_example_runs():
    plan = read_plan(EXAMPLE)
    runs = plan.runs()
    assert missing_pieces(runs) == []
    assert len(runs) == 3 * 2 * 3 * 5
    assert {run.objective.label for run in runs} == {"portfolio", "cigar", "mild ellipsoid"}
    first = next(run for run in runs if run.objective.label == "portfolio")
    outcome = perform(replace(first, max_evaluations=3000))
    assert np.isfinite(outcome.best)
    assert outcome.trace_best[-1] < outcome.trace_best[0] / 10
