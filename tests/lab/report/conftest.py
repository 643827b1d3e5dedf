"""Folders to report on, made of pretended runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mmes.lab.experiments.plan import Objective, Strategy
from mmes.lab.experiments.reproduce import Laboratory
from mmes.lab.experiments.results.store import Store
from mmes.lab.experiments.sections import SECTIONS, Extent
from pretended import make_outcome, make_run

NASTY = "</script><b>Rm & ES"


@pytest.fixture
def comparison_folder(tmp_path) -> Path:
    """Two strategies, one of them with a hostile name, on two problems; one run failed."""
    folder = tmp_path / "comparison"
    about = {"name": "My <comparison>", "chosen": "MMES", "planned": 22, "notes": "Some notes."}
    laboratory = Laboratory(folder, "comparison", about)
    laboratory.save()
    for shift, strategy in enumerate((Strategy("mmes", "MMES"), Strategy("rm-es", NASTY))):
        for objective in (Objective("cigar", "Cigar"), Objective("discus", "Discus")):
            for seed in range(5):
                run = make_run(seed, strategy=strategy, objective=objective)
                outcome = make_outcome(seed, evaluations=100 + 50 * shift + seed)
                laboratory.store.write(run, outcome)
    laboratory.store.write_failure(make_run(99), "ValueError: <no luck>")
    return folder


@pytest.fixture
def reproduction_folder(tmp_path) -> Path:
    """Two sections of the paper with all quick runs pretended."""
    folder = tmp_path / "reproduction"
    names = ["invariance", "basic"]
    Laboratory(folder, "reproduction", {"protocol": "quick", "sections": names}).save()
    store = Store(folder / "runs")
    for name in names:
        for run in SECTIONS[name].runs(Extent.QUICK):
            store.write(run, make_outcome(run.seed, evaluations=200_000 + run.seed))
    return folder


@pytest.fixture
def single_folder(tmp_path) -> Path:
    """One run with a restart."""
    folder = tmp_path / "single"
    folder.mkdir()
    result = {
        "fun": 1.5e-9,
        "nfev": 4000,
        "nit": 200,
        "starts": 2,
        "message": "Reached.",
        "objective": "cigar",
    }
    (folder / "result.json").write_text(json.dumps(result))
    lines = ["evaluations,best,sigma,start"] + [
        f"{20 * (k + 1)},{np.exp(-k / 5)},{3 * np.exp(-(k % 60) / 9)},{k // 60}" for k in range(100)
    ]
    (folder / "history.csv").write_text("\n".join(lines) + "\n")
    np.save(folder / "x.npy", np.linspace(-1, 1, 3000))
    return folder
