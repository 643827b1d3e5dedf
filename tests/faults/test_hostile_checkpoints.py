"""Promises about checkpoints: files made to do harm, rows 14 and 31."""

import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest

import mmes
from mmes import checkpoint
from mmes.errors import CheckpointError
from mmes.strategies.registry import STRATEGIES
from mmes.testing import hostile

START = (np.ones(6), 0.5)


class Payload:
    def __reduce__(self):
        return (os.mkdir, ("run-by-pickle",))


def hostile_file(path, arrays, members, compression=zipfile.ZIP_STORED, state=None):
    """Write a checkpoint with an honest digest and whatever content."""
    header = {"format": 1, "library": "0", "state": state or {}, "arrays": arrays}
    text = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # duplicate names
        for name, data in members:
            archive.writestr(name, data)
        archive.writestr("header.json", text)
        archive.comment = hashlib.blake2b(text, digest_size=16).hexdigest().encode()


def entry(data, name="x", member="0.npy", dtype="<f8", shape=(3,)):
    digest = hashlib.blake2b(data, digest_size=16).hexdigest()
    return {
        "name": name, "member": member, "dtype": dtype, "shape": list(shape), "blake2b": digest
    }  # fmt: skip


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


GOOD = npy(np.arange(3.0))
OBJECT = npy(np.array([Payload()]), allow_pickle=True)
HUGE = GOOD.replace(b"'shape': (3,), }" + b" " * 12, b"'shape': (3000000000000,), }")
NEGATIVE = GOOD.replace(b"'shape': (3,), }" + b" ", b"'shape': (-3,), }")

HOSTILE = {
    "a pickle instead of an array": ([entry(pickle.dumps(Payload()))], pickle.dumps(Payload())),
    "an array of objects": ([entry(OBJECT, dtype="|O", shape=(1,))], OBJECT),
    "an array of objects that claims to be numbers": ([entry(OBJECT, shape=(1,))], OBJECT),
    "an absurd shape": ([entry(GOOD, shape=(10**15,))], GOOD),
    "an absurd shape in both places": ([entry(HUGE, shape=(3 * 10**12,))], HUGE),
    "a negative shape": ([entry(NEGATIVE, shape=(-3,))], NEGATIVE),
    "a shape of words": ([entry(GOOD, shape=("3",))], GOOD),
    "a shape of truths": ([entry(GOOD, shape=(True,))], GOOD),
    "a type that is none": ([entry(GOOD, dtype="__import__('os')")], GOOD),
    "a missing member": ([entry(GOOD, member="7.npy")], GOOD),
    "a path as a member": ([entry(GOOD, member="../../0.npy")], GOOD),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_row14_hostile_arrays_are_refused(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    arrays, data = HOSTILE[case]
    hostile_file("bad.mmes", arrays, [("0.npy", data)])
    with pytest.raises(mmes.CheckpointCorrupt, match=r"bad\.mmes"):
        checkpoint.read("bad.mmes")
    assert os.listdir(tmp_path) == ["bad.mmes"]


def test_row14_the_cases_are_refused_for_their_own_sake(tmp_path):
    """The same file with an honest array loads: it is not some slip of the test that is refused."""
    hostile_file(tmp_path / "good.mmes", [entry(GOOD)], [("0.npy", GOOD)], state={"a": 1})
    state, arrays = checkpoint.read(tmp_path / "good.mmes")
    assert state == {"a": 1}
    assert np.array_equal(arrays["x"], np.arange(3.0))


def test_row14_a_zip_bomb_is_not_inflated(tmp_path):
    bomb = npy(np.zeros(20_000_000))
    hostile_file(
        tmp_path / "bad.mmes",
        [entry(bomb, shape=(20_000_000,))],
        [("0.npy", bomb)],
        zipfile.ZIP_DEFLATED,
    )
    assert (tmp_path / "bad.mmes").stat().st_size < 300_000
    with pytest.raises(mmes.CheckpointCorrupt, match="is compressed"):
        checkpoint.read(tmp_path / "bad.mmes")


def test_row14_members_outside_the_list_and_twice_the_same_are_refused(tmp_path):
    path = tmp_path / "bad.mmes"
    hostile_file(path, [entry(GOOD)], [("0.npy", GOOD), ("../../evil", b"x")])
    with pytest.raises(mmes.CheckpointCorrupt, match="were added"):
        checkpoint.read(path)
    hostile_file(path, [entry(GOOD)], [("0.npy", GOOD), ("0.npy", GOOD)])
    with pytest.raises(mmes.CheckpointCorrupt, match="same name"):
        checkpoint.read(path)
    assert os.listdir(tmp_path) == ["bad.mmes"]


def test_row14_names_of_arrays_are_only_names(tmp_path):
    path = tmp_path / "odd.mmes"
    hostile_file(path, [entry(GOOD, name="../../../etc/x")], [("0.npy", GOOD)])
    assert list(checkpoint.read(path)[1]) == ["../../../etc/x"]
    assert os.listdir(tmp_path) == ["odd.mmes"]


def test_row14_no_pickle_on_the_way_in(saved):
    code = (
        "import builtins, sys\n"
        "import mmes, mmes.checkpoint\n"
        "import pickle, _pickle\n"
        "def refuse(*a, **k): raise AssertionError('pickle was used')\n"
        "for name in ('load', 'loads', 'Unpickler', '_Unpickler'):\n"
        "    setattr(pickle, name, refuse)\n"
        f"mmes.checkpoint.read({str(saved)!r})\n"
        "from mmes.testing.hostile import sphere\n"
        f"print(mmes.resume({str(saved)!r}, sphere, max_evaluations=350).nfev)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "350\n", done.stderr


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


def test_row31_a_list_of_members_without_end_is_not_read(tmp_path):
    """Hundreds of thousands of empty members: parsed, they would take a hundred times the file."""
    path = tmp_path / "bad.mmes"
    hostile_file(path, [], [(str(k), b"") for k in range(30_000)])
    with pytest.raises(mmes.CheckpointCorrupt, match="list of members is too long"):
        checkpoint.read(path)


def test_row31_a_header_without_end_is_not_read(tmp_path):
    hostile_file(tmp_path / "bad.mmes", [], [], state={"a": [[]] * 2_000_000})
    with pytest.raises(mmes.CheckpointCorrupt, match=r"are larger than the file|too long"):
        checkpoint.read(tmp_path / "bad.mmes")
    with pytest.raises(CheckpointError, match="are the notes too long"):
        checkpoint.write(tmp_path / "new.mmes", {"notes": "x" * 5_000_000}, {})


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


@pytest.mark.parametrize("wrong", [np.nan, -1.0, np.inf])
@pytest.mark.parametrize("name", ["collapse_notes", "collapse_verdict", "collapse_medians"])
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
    if wrong == -1.0 and name == "collapse_medians":
        return  # a value of an objective may be that
    with pytest.raises(mmes.CheckpointCorrupt, match="do not fit together"):
        mmes.resume(path, hostile.sphere, max_evaluations=1000)
