"""Damaged and malicious checkpoints, and names of other files."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mmes
from attacks.sandbox import apart
from attacks.tally import Tally
from damage import mutated
from mmes.errors import CheckpointError
from mmes.strategies.registry import STRATEGIES
from mmes.testing import hostile

LARGE = 200 * 2**20
BATCH = 150
BUDGET = 300
_MEMORY = "/dev/shm"

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2.5, 10**9, 4 * 10**8, 2**31, 2**32, 2**53, 2**64, 10**30, 1e308,
    float("nan"), float("inf"), -float("inf"), "", "words", "\x1b[2J", "../../x", [], [1], {},
    {"a": 1}, [[]] * 1000, "x" * 100_000,
)  # fmt: skip


class Original:
    """A good checkpoint, and what a run that goes on from it finds."""

    def __init__(self, folder: Path, strategy: str, **options: Any):
        path = folder / "original.mmes"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mmes.minimize(
                hostile.sphere, np.ones(6), 0.5, seed=5, max_evaluations=BUDGET, checkpoint=path,
                strategy=strategy, restarts=1, **options,
            )  # fmt: skip
        self.data = path.read_bytes()
        state, arrays = mmes.checkpoint.read(path)
        self.state, self.arrays = state, {name: np.array(a) for name, a in arrays.items()}
        self.expected = mmes.resume(
            path, hostile.sphere, max_evaluations=BUDGET + 40, checkpoint=folder / "other.mmes"
        )
        for left in folder.iterdir():
            left.unlink()


def checkpoints(tally: Tally, rng: random.Random) -> None:
    """Resume from many hostile files in one process, which must neither die, hang nor grow."""
    strategy = rng.choice(list(STRATEGIES))
    box = {"bounds": (-5, 5)} if rng.random() < 0.3 else {}
    seed = rng.getrandbits(32)
    kinds = {"bytes": 0, "entries": 0, "arrays": 0, "archives": 0}

    def work() -> str:
        inner = random.Random(seed)
        # In memory, where there is such a disk: writing takes most of the time otherwise.
        with tempfile.TemporaryDirectory(dir=_MEMORY if os.path.isdir(_MEMORY) else None) as name:
            folder = Path(name)
            original = Original(folder, strategy, **box)
            path = folder / "run.mmes"
            base, found = _peak(), []
            for number in range(BATCH):
                kind = inner.choice(list(kinds))
                kinds[kind] += 1
                story = _one(original, path, kind, inner)
                if story:
                    found.append([kind, *story, number])
                if _peak() - base > LARGE:
                    found.append([kind, "large", f"{(_peak() - base) >> 20} MB", number])
                    base = _peak()
                for left in folder.iterdir():
                    left.unlink()
            return json.dumps([kinds, found])

    how, answer = apart(work, 120)
    where = f"strategy {strategy}, {box}, seed {seed}"
    if how != "done":
        failure = {"hung": "hangs", "crashed": "crashes"}.get(how, "other")
        tally.fail("hostile checkpoints", failure, f"{where}: {answer}")
        return
    counted, found = json.loads(answer)
    for kind, count in counted.items():
        tally.inject(f"hostile checkpoints: {kind}", count)
    for kind, failure, story, number in found:
        tally.fail(f"hostile checkpoints: {kind}", failure, f"{where}, file {number}: {story}")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _one(original: Original, path: Path, kind: str, rng: random.Random) -> tuple[str, str] | None:
    """Make one file and resume from it; return what went wrong."""
    if kind == "bytes":
        path.write_bytes(mutated(original.data, rng))
        story = "bytes"
    elif kind == "archives":
        story = forged(original, path, rng)
    else:
        state, arrays = copy.deepcopy(original.state), dict(original.arrays)
        change = changed_entry(state, rng) if kind == "entries" else changed_array(arrays, rng)
        story = change
        try:
            mmes.checkpoint.write(path, state, arrays)
        except (TypeError, ValueError, CheckpointError):
            return None  # cannot even be written
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = mmes.resume(
                path, hostile.sphere, max_evaluations=BUDGET + 40, max_generations=10**9,
                target=None, time_limit=2.0, vectorized=False, evaluation_timeout=None,
                reevaluations=0, restarts=1, checkpoint=path.with_name("new.mmes"),
                checkpoint_seconds=10, checkpoint_generations=None, chunk_size=None,
            )  # fmt: skip
    except (CheckpointError, MemoryError):
        return None
    except BaseException as error:
        return "other", f"{story}: {type(error).__name__}: {str(error)[:300]}"
    if not np.isfinite(result.x).all():
        return "other", f"{story}: x is not finite"
    if kind == "bytes":
        whole = original.expected
        if not np.array_equal(result.x, whole.x) or result.fun != whole.fun:
            return "wrong bits", story
    return None


def changed_entry(state: dict[str, Any], rng: random.Random) -> str:
    """Change an entry of a state, however deep; return which, and to what."""
    place = rng.choice(list(places(state)))
    inner = state
    for key in place[:-1]:
        inner = inner[key]
    if rng.random() < 0.1:
        del inner[place[-1]]
        return f"without {place}"
    value = rng.choice(VALUES)
    inner[place[-1]] = value
    return f"{place} = {str(value)[:40]!r}"


def places(entries: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the keys that lead to each entry of nested dicts."""
    for key, item in entries.items():
        yield (*path, key)
        if isinstance(item, dict):
            yield from places(item, (*path, key))


def changed_array(arrays: dict[str, Any], rng: random.Random) -> str:
    """Change an array: its numbers, its shape, its type, or whether it is there."""
    name = rng.choice(list(arrays))
    array = np.array(arrays[name])
    kind = rng.randrange(8)
    if kind == 0:
        del arrays[name]
        return f"without {name}"
    if kind == 1 and array.size:
        value = rng.choice((np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 5e-324, 1e39))
        if array.dtype.kind != "f":
            value = rng.choice((-1, 2**31, 2**62, -(2**62), 10**9))
        with np.errstate(all="ignore"):
            array.flat[rng.randrange(array.size)] = value
        arrays[name] = array
        return f"{name} with {value}"
    changes = {
        2: lambda a: a[:-1] if a.ndim else a,
        3: lambda a: np.concatenate([a, a]) if a.ndim else np.array([a, a]),
        4: lambda a: a.reshape(-1)[:0],
        5: lambda a: a.astype(rng.choice(("<f4", "<i4", "|b1", "|u1", "<f8"))),
        6: lambda a: a[..., None],
        7: lambda a: np.broadcast_to(a.reshape(-1)[:1], (100_000,)).copy() if a.size else a,
    }
    with np.errstate(all="ignore"):
        arrays[name] = changes.get(kind, lambda a: a.T.copy())(array)
    return f"{name} {arrays[name].dtype}{arrays[name].shape}"


def forged(original: Original, path: Path, rng: random.Random) -> str:
    """Write an archive whose digest is honest and whose list of arrays is not."""
    path.write_bytes(original.data)
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    header = json.loads(members.pop("header.json"))
    entry = rng.choice(header["arrays"])
    word = rng.choice(list(entry))
    entry[word] = rng.choice((*VALUES, [10**15], [-1], [2**63], "|O", "<f8", "0.npy", [0], [10**9]))
    if rng.random() < 0.2:
        header[rng.choice(list(header))] = rng.choice(VALUES)
    if rng.random() < 0.2:
        members[rng.choice(("../../x", "/etc/x", "extra.npy", "0.npy"))] = b"x" * 1000
    if rng.random() < 0.1:
        name = rng.choice(list(members))
        members[name] = members[name] * 2
    text = json.dumps(header).encode()
    compression = rng.choice((zipfile.ZIP_STORED,) * 4 + (zipfile.ZIP_DEFLATED,))
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr("header.json", text)
        archive.comment = hashlib.blake2b(text, digest_size=16).hexdigest().encode()
    return f"array {word} = {str(entry[word])[:40]!r}"


# Names


def names(tally: Tally, rng: random.Random) -> None:
    """Put something else where a checkpoint is read or written; nothing of it may be touched."""
    case = rng.choice(list(_NAMES))
    kind = f"hostile files: {case}"

    def work() -> str:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            victim = folder / "victim"
            victim.write_text("precious")
            _NAMES[case](folder, rng)
            return victim.read_text()

    how, answer = apart(work)
    tally.inject(kind)
    if how == "done" and answer == "precious":
        return
    failure = {"hung": "hangs", "crashed": "crashes", "done": "wrong bits"}.get(how, "other")
    tally.fail(kind, failure, answer)


def _run(folder: Path, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mmes.minimize(
            hostile.sphere, np.ones(6), 0.5, seed=5, max_evaluations=60,
            checkpoint=folder / "run.mmes", checkpoint_generations=1, **options,
        )  # fmt: skip


def _planted(folder: Path, rng: random.Random) -> None:
    """A link, a pipe, a device or a folder in place of the unfinished file and its neighbours."""
    for suffix in (".partial", ".previous", ".previous.link"):
        place = folder / f"run.mmes{suffix}"
        what = rng.randrange(5)
        if what == 0:
            place.symlink_to(rng.choice((folder / "victim", folder / "none", place)))
        elif what == 1:
            os.link(folder / "victim", place)
        elif what == 2:
            os.mkfifo(place)
        elif what == 3:
            place.mkdir()
    with contextlib.suppress(CheckpointError):  # one is there already, says a link
        _run(folder)
    for left in folder.glob("run.mmes*"):
        if not left.is_dir() or left.is_symlink():
            left.unlink()
        else:
            left.rmdir()
    _run(folder)
    assert mmes.resume(folder / "run.mmes", hostile.sphere, max_evaluations=80).nfev == 80


def _not_regular(folder: Path, rng: random.Random) -> None:
    """A pipe, a device or a folder in place of the checkpoint."""
    path = folder / "run.mmes"
    what = rng.randrange(5)
    if what == 0:
        os.mkfifo(path)
    elif what == 1:
        path.symlink_to(rng.choice(("/dev/zero", "/dev/urandom", "/dev/null", "/dev/stdin")))
    elif what == 2:
        path.mkdir()
    elif what == 3:
        path.symlink_to(path)
    else:
        path.write_bytes(rng.randbytes(rng.choice((0, 1, 54, 10_000))))
    try:
        mmes.resume(path, hostile.sphere)
    except (CheckpointError, OSError):
        return
    raise AssertionError("it was resumed")


def _read_only(folder: Path, rng: random.Random) -> None:
    """A folder that becomes read-only: the run goes on, and what is there stays as it is."""
    place = folder / "place"
    place.mkdir()
    path, at = place / "run.mmes", rng.randrange(2, 6)
    mounted = _mounted(place, "size=1m")
    before = b""

    def close_the_folder(progress: mmes.Progress) -> None:
        nonlocal before
        if progress.generation == at:
            before = path.read_bytes()
            if mounted:
                subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
            else:
                place.chmod(0o555)

    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            result = mmes.minimize(
                hostile.sphere, np.ones(6), 0.5, seed=5, max_evaluations=100, checkpoint=path,
                checkpoint_generations=1, callback=close_the_folder,
            )  # fmt: skip
        assert result.nfev == 100
        assert path.read_bytes() == before
        assert [one.category for one in told] == [mmes.errors.CheckpointWarning]
        with contextlib.suppress(PermissionError):
            mmes.resume(path, hostile.sphere)
            raise AssertionError("it would never have been written")
    finally:
        if mounted:
            # What is read from it may still be mapped.
            subprocess.run(["umount", "--lazy", str(place)], check=True)
        else:
            place.chmod(0o755)


def _mounted(place: Path, options: str) -> bool:
    """Put a disk in memory in a folder; return whether that is allowed here."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if shutil.which("mount") is None:
        return False
    return subprocess.run(command, capture_output=True).returncode == 0


def _full_by_limit(folder: Path, rng: random.Random) -> None:
    """No file may grow beyond a few kilobytes: as on a full disk, a write fails in the middle."""
    whole = _run(folder)
    before = (folder / "run.mmes").read_bytes()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (rng.randrange(1, len(before)),) * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = mmes.resume(
            folder / "run.mmes", hostile.sphere, max_evaluations=90, checkpoint_generations=1
        )
    assert result.nfev == 90
    assert (folder / "run.mmes").read_bytes() == before
    assert not (folder / "run.mmes.partial").exists()
    assert whole.nfev == 60


def _full_disk(folder: Path, rng: random.Random) -> None:
    """A small disk of its own, filled up; where mounting is not allowed, the limit again."""
    disk = folder / "disk"
    disk.mkdir()
    pages = rng.randrange(4, 12)
    if not _mounted(disk, f"size={4 * pages}k"):
        return _full_by_limit(folder, rng)
    try:
        result = _run(disk)
        assert result.nfev == 60
        found = set(os.listdir(disk))
        assert found <= {"run.mmes", "run.mmes.previous"}, found
        if "run.mmes" in found:
            mmes.checkpoint.read_one(disk / "run.mmes")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    return None


def _two_writers(folder: Path, rng: random.Random) -> None:
    """Two processes that write the same checkpoint: one is told, and the file is whole."""
    children = []
    for number in range(2):
        child = os.fork()
        if child == 0:
            try:
                for turn in range(30):
                    with contextlib.suppress(CheckpointError):
                        state = {"writer": number, "turn": turn}
                        x = np.full(rng.randrange(1, 5000), float(number))
                        mmes.checkpoint.write(folder / "run.mmes", state, {"x": x})
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    for name in ("run.mmes", "run.mmes.previous"):
        if (folder / name).exists():
            state, arrays = mmes.checkpoint.read_one(folder / name)
            assert (arrays["x"] == state["writer"]).all()
    assert (folder / "run.mmes").exists()


_NAMES = {
    "planted names": _planted,
    "not a regular file": _not_regular,
    "read-only folder": _read_only,
    "limit on file sizes": _full_by_limit,
    "full disk": _full_disk,
    "two writers": _two_writers,
}
