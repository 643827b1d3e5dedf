"""Updates that begin on the device ahead of the values: the same bits as after them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from mmes.base.tensors import to_numpy
from mmes.strategies import STRATEGIES
from mmes.strategies.shell.ask_tell import AskTell

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mmes[torch]'")
pytest.importorskip("triton", reason="triton is not installed")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # read where the kernels are defined


def values_of(generation: int, rows: int) -> Any:
    """Return values with every oddity: ties, failures, infinities, nothing but failures."""
    values = np.random.default_rng(generation).integers(0, 20, rows).astype(np.float32)
    if generation == 1:
        values[::3], values[1], values[2] = np.nan, np.inf, -np.inf
    if generation == 2:
        values[:], values[1] = np.inf, np.nan
    if generation == 3:
        values[:] = np.nan
    return torch.tensor(values, device=DEVICE)


def walked(
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    ahead: int,
    concordance: float | None = None,
    **options: Any,
) -> AskTell:
    monkeypatch.setattr("mmes.kernels.gpu.triton.AHEAD", ahead)
    options = {"population_size": 4, "archive_size": 3} | options
    es = STRATEGIES[name](
        np.linspace(-1, 1, 20), 0.5, seed=3, device=DEVICE, kernel="triton", **options
    )
    if concordance is not None:
        es.search.state.concordance = concordance
    for generation in range(6):
        es.ask()
        values = values_of(generation, es.rows)
        before = None if (values < torch.inf).any() else es.state()
        es.tell(values)
        if before is not None:
            check_same_search(es.state(), before)
    return es


def check_same_search(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one["search"] == other["search"]
    assert one["arrays"].keys() == other["arrays"].keys()
    for name in one["arrays"]:
        if name.startswith("search/"):
            np.testing.assert_array_equal(one["arrays"][name], other["arrays"][name])


@pytest.mark.parametrize(
    ("name", "bounds"), [("mmes", None), ("adaptive", (-1.5, 1.2)), ("rm-es", None)]
)
def test_going_ahead_changes_no_bit(name: str, bounds: Any, monkeypatch: Any) -> None:
    options = {}
    if bounds is not None:
        # The path of the forces looks at the clipped candidates before anything moves.
        options = {"bounds": bounds, "bounds_handling": "clip", "step_size": "paired"}
    with np.errstate(all="ignore"):  # as on a GPU; Triton's interpreter has numpy's warnings
        ahead = walked(name, monkeypatch, 0, **options)
        after = walked(name, monkeypatch, 10**9, **options)
    # Both ways were gone.
    assert ahead.kernel._next_step._sent > 0
    assert after.kernel._next_step._sent == 0
    check_same_search(ahead.state(), after.state())
    np.testing.assert_array_equal(to_numpy(ahead.best_x), to_numpy(after.best_x))
    assert ahead.failed_evaluations == after.failed_evaluations > 0


@pytest.mark.parametrize("size", [15, 16])
def test_where_the_worst_push_the_mean_away_failures_stand_aside(
    size: int, monkeypatch: Any
) -> None:
    """Failed before: ahead of the values the failed candidates were the worst."""
    options = {"concordance": 0.5, "population_size": size, "step_size": "paired"}
    with np.errstate(all="ignore"):
        ahead = walked("adaptive", monkeypatch, 0, **options)
        after = walked("adaptive", monkeypatch, 10**9, **options)
    assert ahead.kernel._next_step._sent > 0
    check_same_search(ahead.state(), after.state())


def test_values_in_parts_or_from_the_host_are_waited_for(monkeypatch: Any) -> None:
    with np.errstate(all="ignore"):
        monkeypatch.setattr("mmes.kernels.gpu.triton.AHEAD", 0)
        es = STRATEGIES["mmes"](
            np.ones(20), 0.5, seed=3, population_size=4, device=DEVICE, kernel="triton"
        )
        for generation in range(4):
            es.ask()
            values = values_of(generation, es.rows)
            if generation % 2:
                es.tell(values.tolist())
            else:
                es.tell(values[:2], range(2))
                es.tell(values[2:], range(2, es.rows))
    assert es.generation == 4
    assert es.kernel._next_step._sent == 0
