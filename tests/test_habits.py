"""What users of SciPy and other libraries try first: it works, or the message names ours."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import mmes
from mmes.base.options import FOREIGN
from mmes.spaces.bounds import checked_bounds
from mmes.strategies import STRATEGIES

X0 = np.ones(6)


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def shifted(x: np.ndarray, by: float, factor: float = 1.0) -> float:
    return factor * sphere(x - by)


# Arguments and options


@pytest.mark.parametrize("workers", [None, 1])
def test_args_are_given_to_the_objective(workers) -> None:
    options = {"seed": 1, "max_evaluations": 40}
    expected = mmes.minimize(lambda x: 3 * sphere(x - 2), X0, 0.5, **options)
    r = mmes.minimize(shifted, X0, 0.5, args=(2.0, 3.0), workers=workers, **options)
    np.testing.assert_array_equal(r.x, expected.x)
    single = mmes.minimize(shifted, X0, 0.5, args=2.0, **options)
    np.testing.assert_array_equal(single.x, expected.x)


def test_args_of_a_resumed_run_and_of_a_factory(tmp_path) -> None:
    path = tmp_path / "run.mmes"
    options = {"seed": 1, "max_evaluations": 40, "checkpoint": path}
    mmes.minimize(shifted, X0, 0.5, args=(2.0,), **options)
    r = mmes.resume(path, shifted, args=(2.0,), max_evaluations=80)
    expected = mmes.minimize(shifted, X0, 0.5, args=(2.0,), seed=1, max_evaluations=80)
    np.testing.assert_array_equal(r.x, expected.x)
    with pytest.raises(TypeError, match="pass them to the Factory"):
        mmes.minimize(mmes.Factory(abs), X0, 0.5, args=(2.0,))


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("maxiter", "max_generations"),
        ("maxfev", "max_evaluations"),
        ("tol", "xtol and ftol"),
        ("popsize", "population_size"),
        ("disp", "progress=True"),
        ("verbose", "progress=True"),
        ("n_jobs", "workers"),
        ("ftarget", "target"),
        ("kwargs", "functools.partial"),
    ],
)
def test_names_of_other_libraries_are_answered_with_ours(name, ours) -> None:
    with pytest.raises(TypeError, match=f"has no option '{name}'; .*{ours}"):
        mmes.minimize(sphere, X0, 0.5, **{name: 1})
    with pytest.raises(TypeError, match=ours):
        mmes.MMES(X0, 0.5, **{name: 1})


def test_the_advice_names_options_that_exist() -> None:
    known = {option.name for option in mmes.options()} | {"workers", "progress", "bounds"}
    known |= {"functools", "derivatives", "there", "it"}
    assert not set(FOREIGN) & known
    for sentence in FOREIGN.values():
        names = [word for word in sentence.replace(",", " ").split() if "_" in word]
        assert set(names) <= known, sentence


def test_a_generator_is_no_seed() -> None:
    with pytest.raises(TypeError, match=r"seed must be an integer.*int\(rng\.integers\(2\*\*32\)"):
        mmes.minimize(sphere, X0, 0.5, seed=np.random.default_rng(1))


def test_a_missing_sigma0_is_explained() -> None:
    with pytest.raises(ValueError, match="about a third of the distance from x0"):
        mmes.minimize(sphere, X0)


def test_the_table_of_options_shows_itself() -> None:
    table = mmes.options()
    assert {"target", "seed", "archive_size"} <= {option.name for option in table}
    assert "Stop as soon as a value at or below this is found, and found again" in repr(table)
    assert "archive_size" not in repr(mmes.options("cma-es"))
    assert all(len(line) < 200 for line in repr(table).splitlines())


# Bounds


@pytest.mark.parametrize(
    ("bounds", "lower", "upper"),
    [
        (((-5, 5), (-5, 5)), [-5, -5], [5, 5]),
        (((0, 1), (2, 3)), [0, 2], [1, 3]),
        (([0, 1], [2, 3]), [0, 2], [1, 3]),
        (((None, 5), (0, None)), [-np.inf, 0], [5, np.inf]),
        # Only the other reading gives a box.
        (((0, 0), (1, 1)), [0, 0], [1, 1]),
        (((5, -5), (6, 7)), [5, -5], [6, 7]),
        # Arrays are sides.
        ((np.array([0, 1]), np.array([2, 3])), [0, 1], [2, 3]),
        ((-1, [2, 3]), [-1, -1], [2, 3]),
        ([(0, 1), (2, 3)], [0, 2], [1, 3]),
    ],
    ids=str,
)
def test_two_pairs_for_two_variables(bounds, lower, upper) -> None:
    for n in (2, None):
        found = checked_bounds(bounds, n)
        assert [side.tolist() for side in found] == [lower, upper]


def test_two_pairs_for_three_variables_are_refused() -> None:
    with pytest.raises(ValueError, match="3 of them"):
        checked_bounds(((-5, 5), (-5, 5)), 3)


# Results and optimizers


def test_a_result_can_be_read_like_a_dict() -> None:
    r = mmes.minimize(sphere, X0, 0.5, seed=1, max_evaluations=40)
    assert r["fun"] == r.fun
    assert "nfev" in r
    assert "jac" not in r
    with pytest.raises(KeyError, match="jac"):
        r["jac"]
    assert dict(r)["message"] == r.message


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda es: pickle.loads(pickle.dumps(es))])
@pytest.mark.parametrize("name", STRATEGIES)
def test_an_optimizer_can_be_copied_at_any_moment(name, copied) -> None:
    es = STRATEGIES[name](X0, 0.5, seed=1, bounds=(-2.0, 2.0))

    def same(other) -> None:
        np.testing.assert_array_equal(other.ask(), es.ask())
        assert (other.generation, other.sigma, other.best_value) == (
            es.generation, es.sigma, es.best_value,
        )  # fmt: skip

    same(copied(es))
    for _ in range(5):
        es.tell([sphere(x) for x in es.ask()])
    same(copied(es))
    X = es.ask()
    es.tell([sphere(X[3]), sphere(X[1])], [3, 1])
    other = copied(es)
    same(other)
    rest = [row for row in range(len(X)) if row not in (1, 3)]
    for one in (es, other):
        one.tell([sphere(X[row]) for row in rest], rest)
    same(other)


def test_optimizers_show_where_they_are() -> None:
    es = mmes.MMES(X0, 0.5, seed=7)
    es.tell([sphere(x) for x in es.ask()])
    text = repr(es)
    assert text.startswith("MMES(n=6, generation=1, evaluations=10, best_value=")
    assert text.endswith("seed=7)")
    assert len(text) < 120
