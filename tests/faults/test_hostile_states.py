"""Promises about checkpoints: well-made files with a wrong state, rows 14 and 31."""

import json
import sys

import numpy as np
import pytest

import mmes
from mmes import checkpoint
from mmes.errors import CheckpointError
from mmes.strategies.registry import STRATEGIES
from mmes.testing import hostile

START = (np.ones(6), 0.5)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("search/search/archive_order", lambda a: a + 1_000_000),
        ("search/search/archive_order", lambda a: -1 - a),
        ("search/search/archive_order", lambda a: np.append(a[:-1], a[0])),
        ("search/search/path", lambda a: a[:-1]),
        ("search/search/archive_vectors", lambda a: a[:, :-1]),
        ("search/search/previous", lambda a: a[:1]),
        ("search/search/archive_stamps", lambda a: np.append(a, a)),
        ("search/search/mean", lambda a: a * np.nan),
        ("search/best_x", lambda a: a * np.inf),
        ("x0", lambda a: a * np.inf),
        ("search/extremes", lambda a: a[:-1]),
        ("history", lambda a: a[:, 1:]),
    ],
)
def test_row14_a_well_made_file_with_a_wrong_state_is_refused(saved, name, change):
    """The native kernel trusts rows and lengths, so they are checked before it sees them."""
    state, arrays = checkpoint.read(saved)
    assert name in arrays
    arrays[name] = change(arrays[name])
    checkpoint.write(saved, state, arrays)
    checkpoint.previous_path(saved).unlink()
    with pytest.raises(mmes.CheckpointCorrupt, match="do not fit together"):
        mmes.resume(saved, hostile.sphere, max_evaluations=400)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_row14_no_strategy_takes_arrays_that_are_too_short(tmp_path, strategy):
    path = tmp_path / "run.mmes"
    options = {"seed": 5, "max_evaluations": 300, "strategy": strategy}
    mmes.minimize(hostile.sphere, *START, checkpoint=path, **options)
    state, arrays = checkpoint.read(path)
    fresh = STRATEGIES[strategy](*START, seed=5).search.arrays()
    fixed = [f"search/search/{name}" for name, array in fresh.items() if array.shape[0]]
    for name in [*fixed, "search/best_x", "x0"]:
        checkpoint.write(path, state, arrays | {name: arrays[name][:-1]})
        checkpoint.previous_path(path).unlink()
        with pytest.raises(mmes.CheckpointCorrupt, match="do not fit together"):
            mmes.resume(path, hostile.sphere, max_evaluations=400)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_row14_no_strategy_takes_numbers_that_are_none(tmp_path, strategy):
    """Of every array and number of the state, whatever the strategy."""
    path = tmp_path / "run.mmes"
    options = {"seed": 5, "max_evaluations": 300, "strategy": strategy}
    mmes.minimize(hostile.sphere, *START, checkpoint=path, **options)
    state, arrays = checkpoint.read(path)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    for name, array in arrays.items():
        if not name.startswith("search/search/") or not array.size:
            continue
        for wrong in (np.nan, -np.inf) if array.dtype.kind == "f" else (-1, 10**9):
            if name.endswith("stamps") or (name.endswith("previous") and wrong == -np.inf):
                continue  # times of generations, values of an objective: they may be that
            changed = array.copy()
            changed.flat[-1] = wrong
            rewrite(path, state, arrays | {name: changed})
            with pytest.raises(mmes.CheckpointCorrupt, match="do not fit together"):
                mmes.resume(path, hostile.sphere, max_evaluations=400)
    for name in state["search"]["search"]:
        for wrong in (np.nan, np.inf, "1", None, [1]):
            changed = state["search"]["search"] | {name: wrong}
            rewrite(path, state | {"search": state["search"] | {"search": changed}}, arrays)
            with pytest.raises(mmes.CheckpointCorrupt, match="do not fit together"):
                mmes.resume(path, hostile.sphere, max_evaluations=400)


def test_row14_a_box_of_another_size_is_refused(tmp_path):
    path = tmp_path / "run.mmes"
    options = {"seed": 5, "max_evaluations": 300, "bounds": (-5, 5)}
    mmes.minimize(hostile.sphere, *START, checkpoint=path, **options)
    state, arrays = checkpoint.read(path)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    knee = arrays["search/knee"]
    for wrong in (knee[:-1], np.append(knee, knee), knee * np.nan, -knee, knee[:0]):
        rewrite(path, state, arrays | {"search/knee": wrong})
        with pytest.raises(mmes.CheckpointCorrupt, match="knee is not a valid array of a box"):
            mmes.resume(path, hostile.sphere, max_evaluations=400)


@pytest.mark.parametrize("word", ["words", "\x1b[2J", "cuda:x", "x" * 100_000])
def test_row14_a_device_that_there_cannot_be_is_refused_without_torch(tmp_path, monkeypatch, word):
    """Found by the attack: torch was loaded for it, half a gigabyte."""
    path = tmp_path / "run.mmes"
    mmes.minimize(hostile.sphere, *START, seed=5, max_evaluations=60, checkpoint=path)
    state, arrays = checkpoint.read(path)
    state["options"]["device"] = word
    rewrite(path, state, {name: np.array(array) for name, array in arrays.items()})
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(mmes.CheckpointCorrupt, match="device must be one of torch's") as caught:
        mmes.resume(path, hostile.sphere, max_evaluations=90)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def rewrite(path, state, arrays):
    """Write a checkpoint without one before it."""
    checkpoint.write(path, state, arrays)
    checkpoint.previous_path(path).unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("strategy", "option"),
    [
        (name, option.name)
        for name, strategy in STRATEGIES.items()
        for option in strategy.option_table()
        if option.name in ("population_size", "archive_size", "directions")
    ],
)
def test_row31_a_small_file_cannot_claim_a_large_state(tmp_path, strategy, option):
    path = tmp_path / "run.mmes"
    mmes.minimize(
        hostile.sphere, *START, seed=5, max_evaluations=300, checkpoint=path, strategy=strategy
    )
    state, arrays = checkpoint.read(path)
    for size in (2_000_000, 4 * 10**8, 10**9):
        search = state["search"]
        changed = search | {"options": search["options"] | {option: size}}
        claims = {"search": changed, "options": state["options"] | {option: size}}
        rewrite(path, state | claims, arrays)
        with pytest.raises(mmes.CheckpointCorrupt, match=f"{option} is {size}, but"):
            mmes.resume(path, hostile.sphere, max_evaluations=400)


@pytest.mark.parametrize("value", [None, "words", -1, 2.5, [], {}, True, 10**30])
def test_row14_an_entry_of_the_wrong_type_is_refused_or_does_no_harm(saved, value):
    """Every entry of the state, however deep, replaced by something else."""
    state, arrays = checkpoint.read(saved)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    for place in places(state):
        changed = json.loads(json.dumps(state))
        inner = changed
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
        rewrite(saved, changed, arrays)
        try:
            result = mmes.resume(saved, hostile.sphere, max_evaluations=320, time_limit=5)
        except (CheckpointError, MemoryError):
            continue
        except (ValueError, ImportError, mmes.EvaluationError):
            # Contradicting limits, vectorized=True, a device that is not here: said so.
            assert place[0] == "limits" or place[-1] == "device"
            continue
        assert np.isfinite(result.x).all(), place


def places(entries, path=()):
    """Yield the keys that lead to each entry of nested dicts."""
    for key, item in entries.items():
        yield (*path, key)
        if isinstance(item, dict):
            yield from places(item, (*path, key))


def test_row14_a_missing_entry_is_refused(saved):
    state, arrays = checkpoint.read(saved)
    del state["search"]["generation"]
    checkpoint.write(saved, state, arrays)
    with pytest.raises(mmes.CheckpointCorrupt, match="KeyError: 'generation'"):
        mmes.resume(saved, hostile.sphere)


def _set(state, path, value):
    """Return the state with another value at a path of names."""
    first, *rest = path
    return state | {first: value if not rest else _set(state[first], rest, value)}


NUMBERS = [
    ("noise", "evaluations"),
    ("noise", "failed"),
    ("noise", "since"),
    ("noise", "patience"),
    ("noise", "sigma_then"),
    ("noise", "asked_at"),
    ("noise", "width"),
    ("spent", "evaluations"),
    ("spent", "failed"),
    ("spent", "seconds"),
    ("start",),
    ("growth",),
    ("first_population_size",),
    ("search", "generation"),
    ("search", "evaluations"),
    ("search", "failed_evaluations"),
    ("search", "failures_in_a_row"),
    ("search", "failing"),
    ("search", "search", "sigma"),
]


@pytest.mark.parametrize("path", NUMBERS, ids="/".join)
@pytest.mark.parametrize("wrong", [-5000, -1.5, np.nan, "words", None, True])
def test_row14_every_number_of_a_state_is_checked(saved, path, wrong):
    """Failed before: noise.evaluations = -5000 gave 5,107 calls at a budget of 300."""
    state, arrays = checkpoint.read(saved)
    rewrite(saved, _set(state, path, wrong), {n: np.array(a) for n, a in arrays.items()})
    with pytest.raises(mmes.CheckpointCorrupt, match="do not fit together"):
        mmes.resume(saved, hostile.sphere, max_evaluations=310)


@pytest.mark.parametrize("wrong", [np.nan, "1.0", [1], True])
@pytest.mark.parametrize("path", [("best_value",), ("search", "best_value"), ("noise", "lowest")])
def test_row14_every_value_of_a_state_is_checked(tmp_path, path, wrong):
    """Failed before: a best value that is NaN was taken."""
    file = tmp_path / "run.mmes"
    options = {"seed": 5, "strategy": "sep-cma", "checkpoint": file, "max_evaluations": 60}
    mmes.minimize(hostile.sphere, *START, **options)
    state, arrays = checkpoint.read(file)
    arrays = {n: np.array(a) for n, a in arrays.items()}
    rewrite(file, _set(state, path, wrong), arrays | {"best_x": np.ones(6)})
    with pytest.raises(mmes.CheckpointCorrupt, match="do not fit together"):
        mmes.resume(file, hostile.sphere, max_evaluations=310)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("noise/sigmas", 1e300),
        ("noise/sigmas", -1.0),
        ("noise/sigmas", np.nan),
        ("search/recent", np.nan),
        ("search/extremes", np.nan),
        ("history", np.nan),
        ("history", -1.0),
    ],
)
def test_row14_every_array_of_numbers_beside_the_search_is_checked(saved, name, wrong):
    """Failed before: 1e300 was taken for a mutation strength to go back to."""
    state, arrays = checkpoint.read(saved)
    arrays = {n: np.array(a) for n, a in arrays.items()}
    arrays[name].flat[0] = wrong
    rewrite(saved, state, arrays)
    with pytest.raises(mmes.CheckpointCorrupt, match="do not fit together"):
        mmes.resume(saved, hostile.sphere, max_evaluations=310)


@pytest.mark.parametrize("wrong", [1e39, np.inf])
def test_row14_a_count_that_is_no_count_is_refused(saved, wrong):
    """Failed before: 1e39 generations became an integer that no array holds, at the next save."""
    state, arrays = checkpoint.read(saved)
    arrays = {n: np.array(a) for n, a in arrays.items()}
    arrays["search/extremes"][-1] = wrong
    rewrite(saved, state, arrays)
    with pytest.raises(mmes.CheckpointCorrupt, match="do not fit together"):
        mmes.resume(saved, hostile.sphere, max_evaluations=310)


@pytest.mark.parametrize("wrong", [-1, 10**9])
def test_row14_a_row_that_is_not_there_is_refused(tmp_path, wrong):
    """Failed before: IndexError where the next path was stored."""
    path = tmp_path / "run.mmes"
    options = {"seed": 5, "strategy": "fast-cma", "checkpoint": path, "max_evaluations": 60}
    mmes.minimize(hostile.sphere, *START, **options)
    state, arrays = checkpoint.read(path)
    state["search"]["search"]["oldest"] = wrong
    rewrite(path, state, {n: np.array(a) for n, a in arrays.items()})
    with pytest.raises(mmes.CheckpointCorrupt, match="do not fit together"):
        mmes.resume(path, hostile.sphere, max_evaluations=310)


def test_row14_patience_without_a_validation_is_refused(saved):
    """Failed before: a ValueError about an option that whoever resumes had not given."""
    state, arrays = checkpoint.read(saved)
    state["limits"]["patience"] = 5
    rewrite(saved, state, {n: np.array(a) for n, a in arrays.items()})
    with pytest.raises(CheckpointError, match="give validation= as then, or patience=None"):
        mmes.resume(saved, hostile.sphere, max_evaluations=310)
    result = mmes.resume(saved, hostile.sphere, max_evaluations=310, patience=None)
    assert result.nfev == 310


def test_row14_counts_that_do_not_add_up_are_refused(saved):
    state, arrays = checkpoint.read(saved)
    state["spent"]["evaluations"] += 10
    rewrite(saved, state, {n: np.array(a) for n, a in arrays.items()})
    with pytest.raises(mmes.CheckpointCorrupt, match="add up to"):
        mmes.resume(saved, hostile.sphere, max_evaluations=310)


COLLAPSE = ["collapse_notes", "collapse_verdict", "collapse_medians", "collapse_best"]
COLLAPSE += ["slope_notes", "slope_differences"]


@pytest.mark.parametrize("wrong", [np.nan, -1.0, np.inf])
@pytest.mark.parametrize("name", COLLAPSE)
def test_row14_what_is_known_of_a_collapse_is_checked(tmp_path, name, wrong):
    """Failed before: a negative mutation strength was taken, to go back to later."""
    path = tmp_path / "run.mmes"
    options = {"seed": 5, "strategy": "adaptive", "checkpoint": path, "max_evaluations": 900}
    mmes.minimize(hostile.sphere, *START, **options)
    state, arrays = checkpoint.read(path)
    arrays = {n: np.array(a) for n, a in arrays.items()}
    changed = arrays[f"search/{name}"]
    assert changed.size
    changed.reshape(-1)[min(1, changed.size - 1) if name == "collapse_notes" else 0] = wrong
    rewrite(path, state, arrays)
    if wrong == -1.0 and name in ("collapse_medians", "collapse_best"):
        return  # a value of an objective may be that
    if wrong == np.inf and name == "collapse_best":
        return  # none was seen
    with pytest.raises(mmes.CheckpointCorrupt, match="do not fit together"):
        mmes.resume(path, hostile.sphere, max_evaluations=1000)
