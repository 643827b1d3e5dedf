"""Runs of the sparse spectral clustering experiment: on a manifold, and by two white-box rivals.

A problem ``clustering/NAME`` is the objective on one data set, with ``beta`` as its option; a
strategy is ``mmes`` (on the Grassmann manifold), ``gsc`` or ``smoothed``.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from mmes.experiments.plan import Run
from mmes.experiments.store import Outcome

PREFIX = "clustering/"
METHODS = ("mmes", "gsc", "smoothed")


def is_clustering(run: Run) -> bool:
    """Whether the run belongs to the clustering experiment."""
    return run.objective.name.startswith(PREFIX)


def _experiment() -> Any:
    # By name, so that the laboratory works in a version without clustering.
    return import_module("mmes.clustering.experiment")


@cache
def data_sets() -> frozenset[str]:
    """Return the data sets that come with this version; none where it has no clustering."""
    if find_spec("mmes.clustering") is None:
        return frozenset()
    return frozenset(import_module("mmes.clustering").dataset_names())


def perform_clustering(run: Run, versions: dict[str, str]) -> Outcome:
    """Carry out one run of the clustering experiment under the paper's protocol."""
    experiment = _experiment()
    task = experiment.Task(
        data_set=run.objective.name.removeprefix(PREFIX),
        beta=dict(run.objective.options)["beta"],
        method=run.strategy.name,
        seed=run.seed,
        protocol=experiment.Protocol(max_evaluations=run.max_evaluations),
    )
    started = datetime.now(UTC).isoformat(timespec="seconds")
    cpu = time.process_time()
    done = experiment.run_task(task)
    end = np.array([float(done.evaluations)])
    return Outcome(
        best=done.value,
        evaluations=done.evaluations,
        generations=0,
        restarts=0,
        reached=False,
        status="FINISHED",
        message="The search on the manifold ended.",
        seconds=done.seconds,
        cpu_seconds=time.process_time() - cpu,
        objective_seconds=0.0,
        started=started,
        versions=versions,
        trace_evaluations=end,
        trace_best=np.array([done.value]),
        trace_sigma=np.array([np.nan]),
    )
