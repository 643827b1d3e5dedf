"""The face of the competitors: bounds, budgets, determinism, states, failures."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from mmes.base.reasons import StopReason
from mmes.errors import TellError
from mmes.lab.competitors import COMPETITORS
from mmes.lab.competitors.parts.draws import Draws
from paths import GOLDEN
from small import bounds, ellipsoid, make, rastrigin, start, walk

RECORDED = GOLDEN / "competitors.json"
everyone = pytest.mark.parametrize("name", COMPETITORS)


@everyone
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_no_point_lies_outside_and_all_are_finite(name: str, n: int) -> None:
    es = make(name, n)
    lower, upper = bounds(n)
    for points in walk(es, rastrigin, 2500):
        assert points.ndim == 2
        assert points.shape[1] == n
        assert (points >= lower).all()
        assert (points <= upper).all()


@everyone
def test_variables_that_cannot_move(name: str) -> None:
    lower, upper = np.full(7, -5.0), np.full(7, 5.0)
    lower[2] = upper[2] = 1.6
    es = make(name, bounds=(lower, upper))
    walk(es, ellipsoid, 1500)
    assert es.best_x[2] == 1.6
    assert es.best_value < ellipsoid(np.full((1, 7), 3.0))[0]


@everyone
def test_the_start_point_is_evaluated(name: str) -> None:
    es = make(name)
    seen = np.concatenate(walk(es, ellipsoid, 400))
    assert (seen == start()).all(axis=1).any()


@everyone
def test_the_seed_decides_everything(name: str) -> None:
    runs = [walk(make(name, seed=seed), rastrigin, 1200) for seed in (1, 1, 2)]
    assert len(runs[0]) == len(runs[1])
    assert all(np.array_equal(a, b) for a, b in zip(runs[0], runs[1], strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(runs[0], runs[2], strict=False))


@everyone
def test_points_kept_by_the_caller_do_not_change_and_are_read_only(name: str) -> None:
    es = make(name)
    kept = []
    while es.evaluations < 1500:
        points = es.ask()
        assert not points.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            points.flags.writeable = True
        assert es.ask() is points or np.array_equal(es.ask(), points)
        kept.append((points, points.copy()))
        es.tell(rastrigin(points))
    assert all(np.array_equal(points, before) for points, before in kept)


@everyone
def test_values_in_parts_and_a_batch_given_up(name: str) -> None:
    whole, parts = make(name), make(name)
    while whole.evaluations < 600:
        points = whole.ask()
        assert np.array_equal(points, parts.ask())
        values = rastrigin(points)
        whole.tell(values)
        order = np.arange(values.size)[::-1]
        if values.size > 1:
            parts.tell(values[:1] - 1.0, [0])
            parts.skip()
            parts.ask()
        for index in np.array_split(order, min(3, order.size)):
            parts.tell(values[index], index)
    assert whole.best_value == parts.best_value


@everyone
@pytest.mark.parametrize("failing", [False, True])
def test_a_state_goes_on_to_the_bit(name: str, failing: bool) -> None:
    def function(points: np.ndarray) -> np.ndarray:
        values = rastrigin(points)
        if failing:
            values[np.floor(7 * points[:, 0]) % 3 == 0] = math.nan
            values[np.floor(7 * points[:, -1]) % 5 == 0] = math.inf
        return values

    es = make(name)
    for until in (0, 1, 700, 1500):
        walk(es, function, until)
        state = es.state()
        plain = {key: value for key, value in state.items() if key != "arrays"}
        read = json.loads(json.dumps(plain)) | {"arrays": state["arrays"]}
        other = type(es).from_state(read)
        assert other.evaluations == es.evaluations
        assert other.failed_evaluations == es.failed_evaluations
        assert other.best_value == es.best_value
        assert other.stop() is es.stop()
        for _ in range(30):
            assert np.array_equal(es.ask(), other.ask())
            values = function(es.ask())
            es.tell(values)
            other.tell(values)


@everyone
def test_a_state_that_does_not_fit_is_refused(name: str) -> None:
    es = make(name)
    walk(es, rastrigin, 300)
    with pytest.raises(ValueError, match="state of the strategy"):
        type(es).from_state(es.state() | {"strategy": "mmes"})
    wrong = es.state()
    wrong["arrays"]["told"] = wrong["arrays"]["told"][:-1]
    with pytest.raises(ValueError, match="as many values"):
        type(es).from_state(wrong)
    wrong = es.state()
    wrong["arrays"]["best_x"] = wrong["arrays"]["best_x"] + 1.0
    with pytest.raises(ValueError, match="best point"):
        type(es).from_state(wrong)


@everyone
def test_failed_evaluations_rank_last(name: str) -> None:
    """NaN instead of the largest finite value: the same search."""
    runs = []
    for failure in (math.nan, math.inf, 1e300):
        es = make(name)
        seen = walk(
            es, lambda points, f=failure: np.where(points[:, 0] > 1, f, ellipsoid(points)), 1000
        )
        assert es.failed_evaluations == (
            sum((points[:, 0] > 1).sum() for points in seen) if failure != failure else 0
        )
        assert math.isfinite(es.best_value)
        runs.append(seen)
    for other in runs[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(runs[0], other, strict=True))


@everyone
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nothing_but_failures_ends_the_search(name: str, value: float) -> None:
    es = make(name)
    while es.stop() is None:
        assert es.evaluations < 2000
        es.tell(np.full(es.ask().shape[0], value))
    assert es.stop() is StopReason.ALL_FAILED
    assert es.best_value == math.inf


@everyone
@pytest.mark.parametrize("huge", [1e308, -1e308])
def test_huge_values_do_no_harm(name: str, huge: float) -> None:
    es = make(name)
    for points in walk(es, lambda x: huge * (0.5 + 0.5 * np.tanh(x[:, 0])), 1500):
        assert np.isfinite(points).all()


@everyone
def test_unbounded_and_constant_objectives_end(name: str) -> None:
    es = make(name)
    es.tell(np.full(es.ask().shape[0], -math.inf))
    assert es.stop() is StopReason.UNBOUNDED
    es = make(name, stagnation_window=800)
    while es.stop() is None:
        assert es.evaluations < 2000
        es.tell(np.zeros(es.ask().shape[0]))
    assert es.stop() is StopReason.STAGNATED
    assert make(name, stagnation_window="off").stop() is None


@everyone
def test_stop_knows_target_and_budget(name: str) -> None:
    es = make(name)
    rows = es.ask().shape[0]
    assert es.stop(max_evaluations=rows) is None
    assert es.stop(max_evaluations=rows - 1) is StopReason.MAX_EVALUATIONS
    es.tell(ellipsoid(es.ask()))
    assert es.stop(target=es.best_value) is StopReason.TARGET_REACHED


@everyone
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bounds": None}, "searches a box: give bounds"),
        ({"bounds": (-np.inf, 5.0)}, "finite on all sides"),
        ({"bounds": (-1e200, 5.0)}, "finite on all sides"),
        ({"bounds": (-5.0, 1.0)}, "x0 must lie inside"),
        ({"population_size": 1}, "population_size must be"),
    ],
)
def test_what_is_refused(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(name, **changes)


@everyone
def test_wrong_tells_change_nothing(name: str) -> None:
    es = make(name)
    rows = es.ask().shape[0]
    with pytest.raises(TellError):
        es.tell(np.zeros(rows + 1))
    with pytest.raises(TellError):
        es.tell([1.0], [rows])
    assert es.evaluations == 0
    with pytest.raises(TypeError, match="has no option 'sigma_min'"):
        make(name, sigma_min=1.0)


@everyone
def test_no_random_number_is_used_twice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[tuple[int, int, int]] = set()

    def recording(method: Any) -> Any:
        def called(self: Draws, count: int, stream: int, step: int, part: int = 0) -> Any:
            address = (int(stream), step, part)
            assert address not in seen
            seen.add(address)
            return method(self, count, stream, step, part)

        return called

    monkeypatch.setattr(Draws, "uniforms", recording(Draws.uniforms))
    monkeypatch.setattr(Draws, "normals", recording(Draws.normals))
    walk(make(name), rastrigin, 3000)
    assert len(seen) > 20


@everyone
def test_what_does_not_fit_is_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(MemoryError, match=f"{name} needs .* usable"):
        make(name, population_size=10**12)


@everyone
def test_every_competitor_improves(name: str) -> None:
    """Smoke: on a scaled sphere of 7 variables all get far below the best of random points."""
    es = make(name, 7)
    walk(es, ellipsoid, 6000)
    random = np.random.default_rng(1).uniform(-4, 4, (6000, 7))
    assert es.best_value < 0.05 * ellipsoid(random).min()


@everyone
def test_golden_trajectories(name: str) -> None:
    """Recorded by this test's `main`; a change of any bit of the values shows."""
    recorded = json.loads(RECORDED.read_text())[name]
    es = make(name, 7)
    walk(es, rastrigin, 2000)
    assert es.evaluations == recorded["evaluations"]
    assert es.generation == recorded["generation"]
    np.testing.assert_allclose(es.best_value, recorded["best_value"], rtol=1e-9)
    np.testing.assert_allclose(es.ask()[0], recorded["next"], rtol=1e-6, atol=1e-9)


def main() -> None:
    recorded = {}
    for name in COMPETITORS:
        es = make(name, 7)
        walk(es, rastrigin, 2000)
        recorded[name] = {
            "evaluations": es.evaluations,
            "generation": es.generation,
            "best_value": es.best_value,
            "next": es.ask()[0].tolist(),
        }
    RECORDED.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
