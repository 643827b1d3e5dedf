"""Promises about checkpoints: rows 11 to 15."""

import hashlib
import io
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import mmes
from mmes import checkpoint, exclusive
from mmes.errors import CheckpointError, CheckpointWarning
from mmes.strategies.registry import STRATEGIES
from mmes.testing import hostile

START = (np.ones(6), 0.5)
GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.fixture
def saved(tmp_path):
    """Return the path of a checkpoint without a previous one."""
    path = tmp_path / "run.mmes"
    options = {"seed": 5, "max_evaluations": 300, "strategy": "mmes"}
    mmes.minimize(hostile.sphere, *START, checkpoint=path, **options)
    checkpoint.previous_path(path).unlink(missing_ok=True)
    return path


# Row 11: the disk is full

FILES = ("fsync", "replace")


@pytest.mark.parametrize("call", FILES)
def test_row11_a_full_disk_leaves_the_old_file_and_the_run_goes_on(tmp_path, monkeypatch, call):
    path = tmp_path / "run.mmes"
    whole = mmes.minimize(hostile.sphere, *START, seed=5, max_evaluations=300)
    mmes.minimize(hostile.sphere, *START, seed=5, max_evaluations=50, checkpoint=path)
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    monkeypatch.setattr(checkpoint.os, call, no_space)
    with pytest.warns(CheckpointWarning, match="cannot be written .*No space") as said:
        result = mmes.resume(path, hostile.sphere, max_evaluations=300, checkpoint_generations=2)
    assert len(said) == 1
    assert np.array_equal(result.x, whole.x)
    assert path.read_bytes() == before["run.mmes"]
    assert set(os.listdir(tmp_path)) <= {"run.mmes", "run.mmes.previous"}


def no_space(*_, **__):
    raise OSError(28, "No space left on device")


def test_row11_strict_raises(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint.os, "fsync", no_space)
    with pytest.raises(CheckpointError, match=r"run\.mmes cannot be written: .*No space"):
        mmes.minimize(
            hostile.sphere,
            *START,
            checkpoint=tmp_path / "run.mmes",
            checkpoint_generations=1,
            checkpoint_strict=True,
        )
    assert os.listdir(tmp_path) == []


def test_row11_a_real_limit_on_the_size_of_files(script, tmp_path):
    process = script(
        """
        import resource, signal, warnings
        import numpy as np, mmes
        from mmes.testing.hostile import sphere

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = mmes.minimize(sphere, np.ones(2000), 0.5, max_evaluations=200,
                                   checkpoint="run.mmes", checkpoint_generations=2)
        print(result.nfev, [w.category.__name__ for w in said])
        """
    )
    out, errors = process.communicate(timeout=60)
    assert out == "200 ['CheckpointWarning']\n", errors
    assert os.listdir(tmp_path) == ["script.py"]


# Row 12: killed while writing

WRITER = """
    import numpy as np, mmes
    from mmes.testing.hostile import sphere
    import sys

    def slow(x):
        return sphere(x)

    mmes.minimize(slow, np.linspace(-1, 1, 3000), 0.5, seed=5, checkpoint="run.mmes", resume="auto",
                  checkpoint_generations=1, stagnation_window="off",
                  callback=lambda p: print(p.generation, flush=True))
    """


def kill_at_random(script, tmp_path, times, rng):
    """Kill a run that writes after every generation; check what is left each time."""
    path = tmp_path / "run.mmes"
    for _ in range(times):
        process = script(WRITER)
        for _ in range(2):
            process.stdout.readline()  # in the second generation, so that there is a checkpoint
        time.sleep(rng.uniform(0.0, 0.3))
        process.send_signal(signal.SIGKILL)
        said, _ = process.communicate()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CheckpointWarning)
            state, _ = checkpoint.read(path)
        last = [int(line) for line in said.split("\n")[:-1] if line]
        if last:
            # The callback of a generation comes before its checkpoint: one interval at most is
            # lost.
            assert state["generations"] >= last[-1] - 1
    return state["generations"]


def test_row12_a_kill_while_writing_costs_one_interval_at_most(script, tmp_path, same):
    reached = kill_at_random(script, tmp_path, 5, random.Random(1))
    continued_equals_uninterrupted(tmp_path, reached, same)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_row12_two_hundred_kills(script, tmp_path, same):
    reached = kill_at_random(script, tmp_path, 200, random.Random(2))
    continued_equals_uninterrupted(tmp_path, reached, same)


def continued_equals_uninterrupted(tmp_path, reached, same):
    limits = {"max_generations": reached + 5, "stagnation_window": "off"}
    whole = mmes.minimize(hostile.sphere, np.linspace(-1, 1, 3000), 0.5, seed=5, **limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckpointWarning)
        resumed = mmes.resume(
            tmp_path / "run.mmes",
            hostile.sphere,
            max_generations=reached + 5,
            checkpoint_generations=1000,
        )
    same(resumed, whole)


def test_row12_what_a_killed_writer_left_is_written_over(tmp_path):
    path = tmp_path / "run.mmes"
    checkpoint.partial_path(path).write_bytes(b"x" * 10_000)
    checkpoint.write(path, {"n": 1}, {})
    assert os.listdir(tmp_path) == ["run.mmes"]
    assert checkpoint.read(path)[0] == {"n": 1}


def test_row12_killed_between_the_renamings_the_previous_is_taken(tmp_path, saved):
    os.rename(saved, checkpoint.previous_path(saved))
    with pytest.warns(CheckpointWarning, match="is missing; the one before it"):
        result = mmes.resume(saved, hostile.sphere, max_evaluations=400)
    assert result.nfev == 400


# Row 13: damaged files


def loads_right_or_not_at_all(path, data, expected):
    """Return what became of a damaged file: 'same' or 'corrupt'; anything else raises."""
    path.write_bytes(data)
    try:
        state, arrays = checkpoint.read(path)
    except mmes.CheckpointCorrupt as error:
        message = str(error)
    else:
        assert fingerprint(state, arrays) == expected
        return "same"
    assert str(path) in message
    return "corrupt"


def fingerprint(state, arrays):
    digest = hashlib.sha256(json.dumps(state, sort_keys=True).encode())
    for name, array in arrays.items():
        digest.update(name.encode() + str((array.dtype, array.shape)).encode() + array.tobytes())
    return digest.hexdigest()


def test_row13_every_flipped_byte_and_every_cut_is_found(saved):
    data = saved.read_bytes()
    expected = fingerprint(*checkpoint.read(saved))
    outcomes = []
    for place in range(0, len(data), 97):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        outcomes.append(loads_right_or_not_at_all(saved, bytes(damaged), expected))
    for length in range(0, len(data), 4096):
        assert loads_right_or_not_at_all(saved, data[:length], expected) == "corrupt"
    assert loads_right_or_not_at_all(saved, data[:-1], expected) == "corrupt"
    # Only fields that say nothing about the content, such as times, may change unnoticed.
    assert outcomes.count("corrupt") > 0.8 * len(outcomes)


def mutated(data, rng):
    """Return a damaged copy: bytes changed, cut out, doubled, swapped, or the end cut off."""
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        kind = rng.randrange(6 if len(damaged) > 1024 else 2)
        at = rng.randrange(len(damaged))
        length = min(rng.choice((1, 2, 16, 512)), len(damaged) - at)
        if kind == 0:
            damaged[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            damaged[at : at + length] = rng.randbytes(length)
        elif kind == 2:
            del damaged[at : at + length]
        elif kind == 3:
            damaged[at:at] = damaged[at : at + length]
        elif kind == 4:
            other = rng.randrange(len(damaged) - length + 1)
            part = bytes(damaged[at : at + length])
            damaged[at : at + length] = damaged[other : other + length]
            damaged[other : other + length] = part
        else:
            damaged = damaged[: max(at, 1)]
    return bytes(damaged)


def fuzz(saved, count, seed):
    rng = random.Random(seed)
    data = saved.read_bytes()
    expected = fingerprint(*checkpoint.read(saved))
    outcomes = [
        loads_right_or_not_at_all(saved, mutated(data, rng), expected) for _ in range(count)
    ]
    assert outcomes.count("corrupt") > 0.5 * count
    return outcomes


def test_row13_five_hundred_mutations(saved):
    fuzz(saved, 500, 3)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_row13_ten_thousand_mutations(saved):
    fuzz(saved, 10_000, 4)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_row13_ten_thousand_mutations_fall_back(saved):
    """With a good one before it, a damaged checkpoint never stops a run."""
    rng = random.Random(5)
    data = saved.read_bytes()
    checkpoint.previous_path(saved).write_bytes(data)
    expected = fingerprint(*checkpoint.read(saved))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckpointWarning)
        for _ in range(10_000):
            saved.write_bytes(mutated(data, rng))
            assert fingerprint(*checkpoint.read(saved)) == expected


def test_row13_the_previous_one_is_taken_with_a_warning(tmp_path, same):
    path = tmp_path / "run.mmes"
    options = {"seed": 5, "max_evaluations": 300}
    mmes.minimize(hostile.sphere, *START, checkpoint=path, checkpoint_generations=3, **options)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.warns(CheckpointWarning, match=r"run\.mmes cannot be used .*corrupt.* is taken"):
        result = mmes.resume(path, hostile.sphere)
    same(result, mmes.minimize(hostile.sphere, *START, **options))
    assert mmes.resume(path, hostile.sphere).nfev == 300  # and the damaged one was replaced


def test_row13_when_both_are_damaged_both_are_named(saved):
    saved.write_bytes(b"nothing of the sort")
    checkpoint.previous_path(saved).write_bytes(b"")
    with pytest.raises(mmes.CheckpointCorrupt, match=r"run\.mmes is corrupt.*run\.mmes\.previous"):
        mmes.resume(saved, hostile.sphere)


# Row 14: hostile files


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
    fresh = STRATEGIES[strategy](*START, seed=5)._search.arrays()
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
        with pytest.raises(mmes.CheckpointCorrupt, match="knee is no array of a box"):
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


# Names that are no files of ours, and other writers


def test_row32_a_planted_link_is_not_followed(tmp_path):
    path, victim = tmp_path / "run.mmes", tmp_path / "victim"
    for plant in (os.symlink, os.link):
        victim.write_text("precious")
        plant(victim, checkpoint.partial_path(path))
        checkpoint.write(path, {"n": 1}, {})
        assert victim.read_text() == "precious"
        assert not path.is_symlink()
        assert checkpoint.read(path)[0] == {"n": 1}
        assert not checkpoint.partial_path(path).exists()


@pytest.mark.timeout(20)
def test_row32_only_regular_files_are_read_and_written(tmp_path):
    pipe = tmp_path / "pipe.mmes"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(mmes.CheckpointCorrupt, match="not a regular file"):
            mmes.resume(path, hostile.sphere)
    os.mkfifo(checkpoint.partial_path(tmp_path / "run.mmes"))
    checkpoint.write(tmp_path / "run.mmes", {"n": 1}, {})
    assert checkpoint.read(tmp_path / "run.mmes")[0] == {"n": 1}
    link = tmp_path / "loop.mmes"
    link.symlink_to(link)
    with pytest.raises(mmes.CheckpointCorrupt, match="cannot be read"):
        checkpoint.read_one(link)


def test_row32_a_second_writer_never_touches_the_finished_file(tmp_path, monkeypatch):
    """It opens the unfinished file, the owner finishes, and only then is the lock free."""
    path = tmp_path / "run.mmes"
    partial = checkpoint.partial_path(path)
    lock = exclusive._lock
    met = []

    def late(handle, name):
        # Between the opening and the lock, the first writer gives the file its name.
        if not met and name.exists() and name.stat().st_size:
            met.append(name.read_bytes())
            os.replace(name, path)
        lock(handle, name)

    checkpoint.write(path, {"n": 1}, {"x": np.arange(5.0)})
    finished = path.read_bytes()
    os.rename(path, partial)
    monkeypatch.setattr(exclusive, "_lock", late)
    checkpoint.write(path, {"n": 2}, {})
    assert met == [finished]
    assert checkpoint.read(path)[0] == {"n": 2}
    assert checkpoint.previous_path(path).read_bytes() == finished


def test_row32_two_writers_of_one_file_are_told_apart(tmp_path):
    path = tmp_path / "run.mmes"
    with exclusive.new_file(checkpoint.partial_path(path)) as file:
        file.write(b"unfinished")
        with pytest.raises(CheckpointError, match="another process is writing"):
            checkpoint.write(path, {"n": 1}, {})
    checkpoint.write(path, {"n": 1}, {})


def test_row12_a_second_signal_while_writing_leaves_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "run.mmes"
    checkpoint.write(path, {"n": 1}, {})
    replace = os.replace

    def interrupted(source, target):
        if str(source).endswith(".link"):
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(checkpoint.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.write(path, {"n": 2}, {})
    assert os.listdir(tmp_path) == ["run.mmes"]


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs Linux's /proc")
def test_row12_a_resumed_run_lets_go_of_the_file_it_came_from(tmp_path):
    """A map of a file that was replaced keeps its space on the disk for the whole run."""
    path = tmp_path / "run.mmes"
    box = (np.full(6, -5.0), np.full(6, 5.0))
    options = {"seed": 5, "bounds": box, "scale": np.full(6, 2.0)}
    mmes.minimize(hostile.sphere, np.ones(6), 0.5, checkpoint=path, max_evaluations=300, **options)
    held = []

    def look(progress):
        held.append(str(path) in Path("/proc/self/maps").read_text())

    mmes.resume(path, hostile.sphere, max_evaluations=400, callback=look)
    assert held
    assert not any(held)


def test_row14_a_missing_entry_is_refused(saved):
    state, arrays = checkpoint.read(saved)
    del state["search"]["generation"]
    checkpoint.write(saved, state, arrays)
    with pytest.raises(mmes.CheckpointCorrupt, match="KeyError: 'generation'"):
        mmes.resume(saved, hostile.sphere)


# Row 15: other versions


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("checkpoint-*.mmes")), ids=lambda p: p.stem)
def test_row15_checkpoints_of_every_release_go_on(path, tmp_path):
    expected = json.loads(path.with_suffix(".json").read_text())
    result = mmes.resume(
        path,
        hostile.sphere,
        max_evaluations=expected["nfev"],
        kernel="reference",
        checkpoint=tmp_path / "new.mmes",
    )
    assert result.nfev == expected["nfev"]
    # A few generations on: other rounding does not grow beyond this.
    np.testing.assert_allclose(result.fun, expected["fun"], rtol=1e-4)
    np.testing.assert_allclose(result.x, expected["x"], rtol=1e-4)


def test_row15_there_is_a_golden_file_for_every_format():
    formats = {checkpoint_format(path) for path in GOLDEN.glob("checkpoint-*.mmes")}
    assert formats == set(range(1, checkpoint.FORMAT + 1))


def checkpoint_format(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("header.json"))["format"]


def test_row15_a_newer_format_is_refused_with_a_sentence(saved, monkeypatch):
    state, arrays = checkpoint.read(saved)
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    checkpoint.write(saved, state, arrays)
    monkeypatch.undo()
    with pytest.raises(mmes.CheckpointTooNew, match=r"newer version.*format 2.*upgrade mmes"):
        mmes.resume(saved, hostile.sphere)
