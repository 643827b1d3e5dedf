"""Cores that a process may not use are not counted, wherever cores are counted."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import mmes
from mmes.base.cores import usable_cores
from mmes.evaluate.choose import make_evaluator
from mmes.evaluate.options import EVALUATION
from mmes.lab.experiments import runner
from mmes.lab.experiments.results.store import Store

SOURCE = Path(mmes.__file__).parent


@pytest.fixture(autouse=True)
def three_of_64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this a process that may use 3 of 64 cores."""
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 5, 6}, raising=False)


def test_the_cores_of_this_process_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert usable_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert usable_cores() == 64


def test_an_executor_gets_a_part_for_each() -> None:
    seen: list[int] = []

    def rows(points: np.ndarray) -> np.ndarray:
        seen.append(len(points))
        return points.sum(axis=1)

    options = {option.name: option.default for option in EVALUATION} | {"vectorized": True}
    with ThreadPoolExecutor(1) as executor:
        evaluator = make_evaluator(rows, executor, (), options)
        evaluator.evaluate(np.ones((12, 2)), 0, lambda: True)
    assert seen == [4, 4, 4]


def test_the_laboratory_takes_a_worker_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    monkeypatch.setattr(runner.Session, "go", lambda self, waiting, count: counts.append(count))
    monkeypatch.setattr(runner, "unique", lambda runs: list(runs))
    runs = [type("Run", (), {"key": str(k)})() for k in range(10)]
    runner.execute(runs, Store(tmp_path / "store"), show=False)
    assert counts == [3]


def test_nothing_else_counts_cores() -> None:
    counted = ("cpu_count", "sched_getaffinity")
    found = {p for p in SOURCE.rglob("*.py") if any(name in p.read_text() for name in counted)}
    assert found == {SOURCE / "base" / "cores.py"}
