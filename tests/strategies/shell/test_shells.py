"""One shell: what a strategy can do, a competitor can; growth, copies and memory in pairs."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import mmes
from mmes.errors import ReducedArchiveWarning
from mmes.extend import KERNELS, Optimizer, ReferenceKernel
from mmes.lab.competitors import COMPETITORS
from mmes.strategies import STRATEGIES

BOX = (-2.0, 3.0)
EVERYONE = {**STRATEGIES, **COMPETITORS}


def sphere(points: np.ndarray) -> np.ndarray:
    return (points**2).sum(axis=1)


def make(name: str, n: int = 12, **options) -> Optimizer:
    return EVERYONE[name](np.full(n, 0.5), 0.5, bounds=BOX, seed=1, **options)


def walk(es: Optimizer, steps: int) -> None:
    for _ in range(steps):
        es.tell(sphere(es.ask()))


@pytest.mark.parametrize("name", EVERYONE)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda es: pickle.loads(pickle.dumps(es))])
def test_everyone_can_be_copied_within_a_generation(name, copied) -> None:
    es = make(name)
    walk(es, 4)
    points = es.ask()
    while len(points) == 1:  # single steps of a local search cannot be told in parts
        es.tell(sphere(points))
        points = es.ask()
    es.tell(sphere(points)[:1], [0])
    other = copied(es)
    np.testing.assert_array_equal(other.ask(), points)
    rest = np.arange(1, len(points))
    for one in (es, other):
        one.tell(sphere(points)[1:], rest)
    np.testing.assert_array_equal(other.ask(), es.ask())
    assert (other.best_value, other.evaluations) == (es.best_value, es.evaluations)


@pytest.mark.parametrize("name", EVERYONE)
def test_everyone_refuses_values_that_were_not_asked_for(name) -> None:
    es = make(name)
    with pytest.raises(mmes.TellError, match="call ask"):
        es.tell(np.zeros(es.rows))
    es.tell(sphere(es.ask()))
    with pytest.raises(mmes.TellError, match="call ask"):
        es.tell(np.zeros(es.rows))
    es.ask()
    es.skip()
    with pytest.raises(mmes.TellError, match="call ask"):
        es.tell(np.zeros(es.rows))


@pytest.mark.parametrize("name", EVERYONE)
def test_values_of_any_finite_size_can_be_the_best(name) -> None:
    """A competitor took nothing from 1e300 on for the best before: fun = inf, x = x0."""
    es = make(name)
    for _ in range(3):
        points = es.ask()
        es.tell(1e305 * (1 + sphere(points)))
    assert np.isfinite(es.best_value)
    assert 1e305 * (1 + sphere(es.best_x[None]))[0] == pytest.approx(es.best_value)


@pytest.mark.parametrize("name", COMPETITORS)
def test_who_cannot_grow_says_so(name) -> None:
    assert not EVERYONE[name].grows
    with pytest.raises(TypeError, match=f"'{name}' cannot grow"):
        make(name).grow()


@pytest.mark.parametrize("name", STRATEGIES)
def test_growing_several_times_leaves_a_state_that_can_be_restored(name) -> None:
    """The sizes were refused by the check of hostile states before."""
    es = make(name)
    walk(es, 2)
    for _ in range(3):
        es.grow()
    other, copied = type(es).from_state(es.state()), copy.deepcopy(es)
    for one in (other, copied):
        np.testing.assert_array_equal(one.ask(), es.ask())
    for one in (es, other, copied):
        walk(one, 2)
    np.testing.assert_array_equal(other.ask(), es.ask())


def test_growth_that_does_not_fit_leaves_the_search_as_it_was(monkeypatch) -> None:
    es = make("mmes")
    walk(es, 3)
    options, points = dict(es.options), es.ask().copy()
    es.skip()

    monkeypatch.setattr(mmes.MMES, "search_type", _Fails(mmes.MMES.search_type))
    with pytest.raises(MemoryError, match="none left"):
        es.grow()
    monkeypatch.undo()
    assert es.options == options
    np.testing.assert_array_equal(es.ask(), points)


class _Fails:
    """A search type of which nothing can be made."""

    def __init__(self, kind):
        self.kind = kind

    def __getattr__(self, name):
        return getattr(self.kind, name)

    def __call__(self, setup, options):
        raise MemoryError("none left")


def test_growth_plans_with_the_memory_that_the_search_hands_over(monkeypatch) -> None:
    """The archive was cut before, or growth refused, though all of it fitted."""
    es = mmes.MMES(np.zeros(2000), 1.0, seed=1)
    archive, held = es.options["archive_size"], es.planned_bytes
    # What is free now does not hold a second search; with what is handed over there is room.
    monkeypatch.setattr("mmes.base.memory.available_bytes", lambda: int(0.9 * held))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReducedArchiveWarning)
        es.grow()
    assert es.options["archive_size"] == archive


def test_a_kernel_that_is_registered_later_is_known(monkeypatch) -> None:
    class Mine(ReferenceKernel):
        name = "mine"

    monkeypatch.setitem(KERNELS, "mine", lambda threads: Mine())
    r = mmes.minimize(lambda x: x @ x, np.ones(20), 0.5, kernel="mine", max_evaluations=30, seed=1)
    assert r.kernel == "mine"
    with pytest.raises(ValueError, match="'mine'"):
        mmes.minimize(lambda x: x @ x, np.ones(20), 0.5, kernel="yours")


def test_rows_are_read_only_copies_wherever_they_come_from() -> None:
    for asked_first in (False, True):
        es = make("mmes")
        walk(es, 1)
        if asked_first:
            es.ask()
        rows = es.ask(rows=[4, 1])
        assert not rows.flags.writeable
        np.testing.assert_array_equal(rows, es.ask()[[4, 1]])


def test_the_mean_in_a_box_is_computed_once_per_generation(monkeypatch) -> None:
    es = make("adaptive", n=200)
    walk(es, 2)
    calls = []
    confine = es.kernel.confine
    monkeypatch.setattr(es.kernel, "confine", lambda *a: calls.append(1) or confine(*a))
    first = es.mean
    assert es.mean is first
    assert len(calls) == 1
    walk(es, 1)
    assert not np.array_equal(es.mean, first)
