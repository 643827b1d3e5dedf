"""Stand-ins for a real run, importable in worker processes. A log file counts the beginnings."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from mmes.lab.experiments.plan import Objective, Strategy, Trial
from mmes.lab.experiments.results.store import TrialResult


def make_run(seed: int, **changes) -> Trial:
    fields = {
        "strategy": Strategy("mmes", "MMES"),
        "objective": Objective("cigar", "Cigar"),
        "dimension": 10,
        "seed": seed,
        "max_evaluations": 1000,
    }
    return Trial(**(fields | changes))


def make_outcome(
    seed: int = 1, *, evaluations: int = 100, best: float = 1e-9, **changes
) -> TrialResult:
    fields = {
        "best": best,
        "evaluations": evaluations,
        "generations": 10,
        "restarts": 0,
        "reached": best <= 1e-8,
        "status": "TARGET",
        "message": "the target was reached",
        "seconds": 0.5,
        "cpu_seconds": 0.5,
        "objective_seconds": 0.1,
        "started": "2021-01-01T00:00:00+00:00",
        "versions": {"mmes": "0", "numpy": "1"},
        "trace_evaluations": np.array([10.0, 50.0, evaluations]),
        "trace_best": np.array([5.0, 1e-3, best]) * (1 + seed / 100),
        "trace_sigma": np.array([3.0, 0.1, 0.001]),
    }
    return TrialResult(**(fields | changes))


def _log(run: Trial) -> None:
    log = Path(os.environ["PRETENDED_LOG"])
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{run.key} {os.getpid()}\n")


def gated(run: Trial) -> TrialResult:
    """Wait, from seed 6 on, until there is a file named as the log with ``.go`` after it."""
    _log(run)
    gate = Path(os.environ["PRETENDED_LOG"] + ".go")
    while run.seed >= 6 and not gate.exists():
        time.sleep(0.01)
    return make_outcome(run.seed)


def quick(run: Trial) -> TrialResult:
    _log(run)
    return make_outcome(run.seed)


def failing(run: Trial) -> TrialResult:
    _log(run)
    if run.seed == 2:
        raise ValueError("seed 2 is unlucky")
    return make_outcome(run.seed)


def dying(run: Trial) -> TrialResult:
    _log(run)
    if run.seed == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return make_outcome(run.seed)
