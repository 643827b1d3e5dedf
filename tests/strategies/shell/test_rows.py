"""Asking for some rows of a generation: which may be asked, by strategies and competitors."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import mmes
from mmes.errors import TellError
from mmes.lab.competitors import COMPETITORS

N = 12


def made(name: str) -> Any:
    if name in COMPETITORS:
        return COMPETITORS[name](np.full(N, 0.5), bounds=(-1.0, 1.0), seed=1)
    bounds = (-1.0, 1.0) if name == "box" else None
    return mmes.MMES(np.full(N, 0.5), 0.3, bounds=bounds, seed=1)


@pytest.fixture(params=["mmes", "box", "decc-g"])
def es(request: pytest.FixtureRequest) -> Any:
    return made(request.param)


# What is asked when nothing was asked, when all were asked, and in a later generation.
WHEN = {
    "first": lambda es: None,
    "asked": lambda es: es.ask(),
    "later": lambda es: es.tell(np.arange(len(es.ask()), dtype=float)),
}


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0.7], r"rows must list rows as integers, not \[0.7\]"),
        ([True, False], "rows must list rows as integers"),
        ([[0, 1]], "rows must list rows as integers"),
        (["first"], "rows must list rows as integers"),
        ([0, -1], r"rows must lie in 0\.\.\d+, the rows asked, not -1"),
        ([0, 9999], r"rows must lie in 0\.\.\d+, the rows asked, not 9999"),
        (range(0, -2, -1), r"rows must lie in 0\.\.\d+, the rows asked, not -1"),
        (range(0, 10_000, 9999), r"rows must lie in 0\.\.\d+, the rows asked, not 9999"),
    ],
)
def test_rows_that_are_none_are_refused(es: Any, when: str, rows: Any, message: str) -> None:
    WHEN[when](es)
    with pytest.raises(ValueError, match=message):
        es.ask(rows)
    with pytest.raises(ValueError, match=f"0..{es.rows - 1},"):
        es.ask([es.rows])
    es.ask()
    with pytest.raises(TellError, match=message.replace("rows must", "index must")):
        es.tell(np.zeros(np.size(rows)), index=rows)


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize(
    "rows", [[], [0], [2, 0], [1, 1, 0, 1], (3,), np.array([4], np.uint8), range(3)]
)
def test_rows_may_come_in_any_order_and_again(es: Any, when: str, rows: Any) -> None:
    WHEN[when](es)
    some = es.ask(rows)
    whole = es.ask()
    np.testing.assert_array_equal(some, whole[np.array(rows, int)])


def test_a_single_row_may_be_named_by_its_number(es: Any) -> None:
    np.testing.assert_array_equal(es.ask(3), es.ask()[3:4])


@pytest.mark.parametrize("way", ["rows", "pickle", "few"])
def test_equal_values_give_the_same_bits_in_any_way(way: str) -> None:
    """Before, other bits: whether a plateau is wide was decided by points that were at hand."""

    def f(x: Any) -> float:
        return max(float(x @ x), 0.01)

    def run(way: str) -> tuple[float, bytes]:
        options = {"rows_at_once": 1} if way == "few" else {}
        es: Any = mmes.AdaptiveMMES(np.full(1, 1.3), 0.5, bounds=(-2.0, 2.0), seed=3, **options)
        for _ in range(400):
            if way in ("rows", "few"):
                values = [f(es.ask(rows=[row])[0]) for row in range(es.rows)]
                es.ask(rows=())
            else:
                values = [f(x) for x in es.ask()]
            if way == "pickle":
                es = pickle.loads(pickle.dumps(es))
            es.tell(values)
        return es.sigma, es.mean.tobytes()

    assert run(way) == run("whole")
