"""Competitors where strategies stand: in minimize, resume, plans and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mmes
from mmes.cli import main
from mmes.lab.competitors import COMPETITORS
from mmes.strategies import get_strategy
from small import OPTIONS, ellipsoid, rastrigin

everyone = pytest.mark.parametrize("name", COMPETITORS)
BOX = (np.full(7, -5.0), np.full(7, 5.0))


@everyone
def test_budgets_are_kept_to_the_evaluation(name: str) -> None:
    for budget in (1, 17, 500, 1003):
        seen: list[int] = []

        def function(points: np.ndarray, seen: list[int] = seen) -> np.ndarray:
            seen.append(len(points))
            return rastrigin(points)

        result = mmes.minimize(
            function,
            bounds=BOX,
            strategy=name,
            seed=1,
            max_evaluations=budget,
            vectorized=True,
            **OPTIONS[name],
        )
        assert sum(seen) == result.nfev == budget
        assert result.reason is mmes.StopReason.MAX_EVALUATIONS
        assert rastrigin(result.x[None, :])[0] == result.fun


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "mos")) for n in COMPETITORS]
)
def test_a_run_ends_by_itself(name: str) -> None:
    result = mmes.minimize(
        ellipsoid,
        bounds=BOX,
        strategy=name,
        seed=1,
        vectorized=True,
        stagnation_window=500,
        **OPTIONS[name],
    )
    assert result.reason is mmes.StopReason.STAGNATED


@everyone
def test_a_checkpoint_goes_on_to_the_bit(name: str, tmp_path: Path) -> None:
    file = tmp_path / "run.mmes"
    given = {"bounds": BOX, "strategy": name, "seed": 3, "vectorized": True} | OPTIONS[name]
    whole = mmes.minimize(rastrigin, max_evaluations=1500, **given)
    part = mmes.minimize(rastrigin, max_evaluations=700, checkpoint=file, **given)
    assert part.nfev == 700
    going_on = mmes.resume(file, rastrigin, max_evaluations=1500)
    assert going_on.fun == whole.fun
    assert going_on.nfev == 1500
    assert np.array_equal(going_on.x, whole.x)


def test_restarts_double_the_population() -> None:
    result = mmes.minimize(
        lambda points: np.zeros(len(points)),
        bounds=BOX,
        strategy="shade-ils",
        seed=1,
        vectorized=True,
        stagnation_window=300,
        restarts=1,
        **OPTIONS["shade-ils"],
    )
    assert result.starts == 2
    assert result.options["population_size"] == 20


def test_workers_change_nothing() -> None:
    given = {"bounds": BOX, "strategy": "mos", "seed": 3, "max_evaluations": 300} | OPTIONS["mos"]
    results = [mmes.minimize(sphere, workers=workers, **given) for workers in (None, 2)]
    assert results[0].fun == results[1].fun
    assert np.array_equal(results[0].x, results[1].x)


def sphere(x: np.ndarray) -> float:
    return float((x * x).sum())


@everyone
def test_without_a_box_the_error_says_what_to_give(name: str) -> None:
    for given in ((), (np.zeros(3), 1.0)):
        with pytest.raises(ValueError, match=f"strategy '{name}' searches a box: give bounds="):
            mmes.minimize(sphere, *given, strategy=name)


def test_names_are_found_as_strategies_are() -> None:
    assert get_strategy("DECC-G") is COMPETITORS["decc-g"]
    assert get_strategy("MA-SW-Chains").name == "ma-sw-chains"
    assert get_strategy(COMPETITORS["mos"]) is COMPETITORS["mos"]
    with pytest.raises(ValueError, match="shade-ils"):
        get_strategy("shade-isl")


def test_the_command_line_takes_the_problems_box(tmp_path: Path) -> None:
    words = ["run", "lsgo2013/f7", "--strategy", "mos", "--seed", "1", "--quiet"]
    assert main([*words, "--max-evaluations", "600", "--out", str(tmp_path / "out")]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["strategy"] == "mos"
    assert result["nfev"] == 600
