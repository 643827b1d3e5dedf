"""Promises about checkpoints: writing them, other writers, other versions; rows 11, 12, 15, 32."""

import json
import os
import random
import signal
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import mmes
from mmes import checkpoint
from mmes.checkpoint import files
from mmes.errors import CheckpointError, CheckpointWarning
from mmes.testing import hostile
from paths import GOLDEN

START = (np.ones(6), 0.5)


# Row 11: the disk is full

FILES = ("fsync", "replace")


@pytest.mark.parametrize("call", FILES)
def test_row11_a_full_disk_leaves_the_old_file_and_the_run_goes_on(tmp_path, monkeypatch, call):
    path = tmp_path / "run.mmes"
    whole = mmes.minimize(hostile.sphere, *START, seed=5, max_evaluations=300)
    mmes.minimize(hostile.sphere, *START, seed=5, max_evaluations=50, checkpoint=path)
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    monkeypatch.setattr(os, call, no_space)
    with pytest.warns(CheckpointWarning, match="cannot be written .*No space") as said:
        result = mmes.resume(path, hostile.sphere, max_evaluations=300, checkpoint_generations=2)
    assert len(said) == 1
    assert np.array_equal(result.x, whole.x)
    assert path.read_bytes() == before["run.mmes"]
    assert set(os.listdir(tmp_path)) <= {"run.mmes", "run.mmes.previous"}


def no_space(*_, **__):
    raise OSError(28, "No space left on device")


def test_row11_strict_raises(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", no_space)
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
def test_row12_sixty_kills(script, tmp_path, same):
    reached = kill_at_random(script, tmp_path, 60, random.Random(2))
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
    with pytest.warns(CheckpointWarning, match="is missing; the previous one"):
        result = mmes.resume(saved, hostile.sphere, max_evaluations=400)
    assert result.nfev == 400


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
    lock = files.lock
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
    monkeypatch.setattr(files, "lock", late)
    checkpoint.write(path, {"n": 2}, {})
    assert met == [finished]
    assert checkpoint.read(path)[0] == {"n": 2}
    assert checkpoint.previous_path(path).read_bytes() == finished


def test_row32_two_writers_of_one_file_are_told_apart(tmp_path):
    path = tmp_path / "run.mmes"
    with files.new_file(checkpoint.partial_path(path)) as file:
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

    monkeypatch.setattr(os, "replace", interrupted)
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
    monkeypatch.setattr(checkpoint.format, "FORMAT", checkpoint.FORMAT + 1)
    checkpoint.write(saved, state, arrays)
    monkeypatch.undo()
    with pytest.raises(mmes.CheckpointTooNew, match=r"newer version.*format 3.*upgrade mmes"):
        mmes.resume(saved, hostile.sphere)
