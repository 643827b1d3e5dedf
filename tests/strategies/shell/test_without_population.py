"""A search without a population: rows on demand, parents made again; the bits of one with it."""

from __future__ import annotations

import copy
import os
import pickle
from typing import Any

import numpy as np
import pytest

import mmes
from mmes.base.tensors import to_numpy

N = 40
CASES: dict[str, dict[str, Any]] = {
    "mmes": {},
    "adaptive": {"strategy": mmes.AdaptiveMMES},
    "adaptive, pairs": {"strategy": mmes.AdaptiveMMES, "mirroring": "fixed"},
    "not mirrored": {"mirrored": False},
    "smooth box": {"strategy": mmes.AdaptiveMMES, "bounds": (-1.0, 30.1)},
    "clipped": {"strategy": mmes.AdaptiveMMES, "bounds": (-1.0, 30.1), "bounds_handling": "clip"},
    "reflected": {"bounds": (-1.0, 30.1), "bounds_handling": "reflect"},
    "scales": {"scale": np.linspace(0.5, 2, N), "isotropic": "student"},
    "exact": {"sampling": "exact", "archive_size": 5},
    "all directions": {"mixing": "m", "archive_size": 9},
}


def made(case: str, **options: Any) -> Any:
    given = {"strategy": mmes.MMES, "seed": 7} | CASES[case] | options
    kind = given.pop("strategy")
    return kind(np.full(N, 30.0), 0.3, **given)


def values_of(points: Any) -> np.ndarray:
    # Linear at first and curved later: the share of mirrored pairs changes on the way.
    return np.abs(to_numpy(points).astype(float)).sum(1)


def generation(es: Any, at_once: int) -> np.ndarray:
    """Tell a generation that was asked for a few rows at a time; return its candidates."""
    seen = []
    for first in range(0, es.rows, at_once):
        rows = range(first, min(first + at_once, es.rows))
        points = es.ask(rows=rows)
        assert points.shape == (len(rows), N)
        es.tell(values_of(points), index=rows)
        seen.append(to_numpy(points).copy())
    return np.concatenate(seen)


def same(one: Any, other: Any) -> None:
    here, there = one.state(), other.state()
    assert here["search"] == there["search"]
    assert here["best_value"] == there["best_value"]
    for name, array in here["arrays"].items():
        np.testing.assert_array_equal(array, there["arrays"][name], err_msg=name)


def walk(case: str, generations: int = 60, **options: Any) -> None:
    one, other = made(case, **options), made(case, rows_at_once=3, **options)
    assert other.rows_at_once == 3
    for _ in range(generations):
        points = one.ask()
        one.tell(values_of(points))
        np.testing.assert_array_equal(generation(other, 3), to_numpy(points))
    same(one, other)


@pytest.mark.parametrize("kernel", ["native", "reference"])
@pytest.mark.parametrize("case", CASES)
def test_the_bits_are_those_with_a_population(case: str, kernel: str) -> None:
    if kernel == "native":
        pytest.importorskip("mmes.kernels.native")
    walk(case, kernel=kernel)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("case", ["mmes", "adaptive", "smooth box", "clipped", "exact"])
def test_the_bits_of_torch(case: str, precision: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'mmes[torch]'")
    walk(case, 15, kernel="torch", device="cpu", population_dtype=precision)


@pytest.mark.parametrize("case", ["mmes", "adaptive", "smooth box"])
def test_the_bits_of_triton(case: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mmes[torch]'")
    pytest.importorskip("triton", reason="triton is not installed")
    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        os.environ["TRITON_INTERPRET"] = "1"  # read where the kernels are defined
    place = {"kernel": "triton", "device": "cuda" if on_gpu else "cpu"}
    with np.errstate(all="ignore"):  # the interpreter has numpy's warnings
        walk(case, 60 if on_gpu else 2, population_dtype="float32", **place)
        if case == "adaptive":
            place["mean_dtype"] = "float32"
            walk(case, 60 if on_gpu else 1, population_dtype="float32", **place)


def test_the_share_of_pairs_changes_on_the_way() -> None:
    """Else the tests above would say little about independent draws."""
    es, seen = made("adaptive"), set()
    for _ in range(60):
        es.tell(values_of(es.ask()))
        seen.add(round(es.state()["search"]["concordance"], 3) > 0.15)
    assert seen == {True, False}


@pytest.mark.parametrize("case", ["mmes", "adaptive", "smooth box"])
def test_failures_and_the_best_point(case: str) -> None:
    one, other = made(case), made(case, rows_at_once=2)
    for turn in range(20):
        points = one.ask()
        values = values_of(points)
        values[:: 2 + turn % 3] = np.nan
        if turn == 7:
            values[:] = np.nan
        one.tell(values)
        order = np.random.default_rng(turn).permutation(other.rows)
        for row in order[:-1]:
            other.ask(rows=[row])
            other.tell(values[[row]], index=[row])
        # While values come in parts, the best of them is made again where it is looked at.
        best = np.nanmin(values[order[:-1]]) if turn != 7 else np.inf
        if best < other.state()["best_value"]:
            assert other.best_value == best
            row = int(np.flatnonzero(values == best)[0])
            np.testing.assert_array_equal(other.best_x, points[row])
        other.tell(values[order[-1:]], index=order[-1:])
        assert one.best_value == other.best_value
        np.testing.assert_array_equal(one.best_x, other.best_x)
    assert one.failed_evaluations == other.failed_evaluations > 0
    same(one, other)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda es: pickle.loads(pickle.dumps(es))])
def test_copies_and_states_within_a_generation(copied: Any) -> None:
    one, es = made("adaptive"), made("adaptive", rows_at_once=2)
    for _ in range(5):
        one.tell(values_of(one.ask()))
        generation(es, 2)
    es.tell(values_of(es.ask(rows=[0, 1])), index=[0, 1])
    other = copied(es)
    assert other.rows_at_once == 2
    for each in (es, other):
        rest = np.arange(2, each.rows)
        each.tell(values_of(each.ask(rows=rest)), index=rest)
    one.tell(values_of(one.ask()))
    same(es, other)
    same(one, es)
    # A state says how many were asked for by name; a copy of the search goes on alike.
    again = mmes.AdaptiveMMES.from_state(es.state())
    assert again.rows_at_once == 2
    one.tell(values_of(one.ask()))
    generation(again, 5)
    same(one, again)


def test_growth_keeps_the_rows() -> None:
    one, es = made("adaptive"), made("adaptive", rows_at_once=2)
    for turn in range(12):
        if turn == 6:
            one.grow()
            es.grow()
        one.tell(values_of(one.ask()))
        generation(es, es.rows_at_once)
    assert es.rows_at_once == 2
    same(one, es)


def test_a_generation_may_be_asked_for_as_a_whole_all_the_same() -> None:
    one, es = made("adaptive"), made("adaptive", rows_at_once=2)
    for _ in range(5):
        some = es.ask(rows=[4, 1])
        points = es.ask()
        np.testing.assert_array_equal(points, one.ask())
        np.testing.assert_array_equal(some, points[[4, 1]])
        one.tell(values_of(points))
        es.tell(values_of(points))
    same(one, es)


def test_memory_of_rows_is_used_again_and_never_under_who_holds_it() -> None:
    es = made("mmes", rows_at_once=2)
    held = es.ask(rows=[0, 1])
    kept = held.copy()
    places = set()
    for first in range(2, es.rows - 1, 2):
        some = es.ask(rows=[first, first + 1])
        places.add(some.ctypes.data)
        del some
    assert len(places) == 1
    np.testing.assert_array_equal(held, kept)
