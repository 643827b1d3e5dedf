"""The checkpoint's file format, and how runs use it."""

import json
import os
import time
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest

import mmes
from mmes import checkpoint
from mmes.checkpoint import files
from mmes.errors import CheckpointCorrupt, CheckpointError, CheckpointExists, CheckpointWarning
from mmes.run.saving import Saver
from mmes.testing import hostile

START = (np.ones(6), 0.5)


def run_with(path, **options):
    return mmes.minimize(
        hostile.sphere, *START, **{"seed": 5, "max_evaluations": 100, "checkpoint": path} | options
    )


def test_what_is_written_is_read(tmp_path):
    state = {
        "words": "a b",
        "numbers": [1, 2.5, 1e-300, 0.1 + 0.2],
        "no numbers": {"a": np.inf, "b": -np.inf, "c": np.nan},
        "numpy": [np.int64(3), np.float64(0.5), np.bool_(True)],
        "nothing": None,
        "huge": 2**63 - 1,
    }
    arrays = {
        "a/b": np.arange(12.0).reshape(3, 4)[:, ::2],
        "../c": np.arange(5, dtype=np.float32),
        "scalar": np.array(2.0),
        "empty": np.empty((0, 7)),
        "flags": np.array([True, False]),
        "large": np.arange(3_000_000),
    }
    path = tmp_path / "some.mmes"
    checkpoint.write(path, state, arrays)
    entries, found = checkpoint.read(path)
    assert np.isnan(entries["no numbers"].pop("c"))
    assert np.isnan(state["no numbers"].pop("c"))
    assert entries == state
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert np.array_equal(found[name], array)
        assert not found[name].flags.writeable or not array.size


def test_any_tool_can_read_the_arrays(tmp_path):
    path = tmp_path / "some.mmes"
    checkpoint.write(path, {"n": 3}, {"x": np.arange(3.0)})
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        header = json.loads(archive.read("header.json"))
        with archive.open(header["arrays"][0]["member"]) as member:
            assert np.array_equal(np.load(member, allow_pickle=False), np.arange(3.0))
    assert header["format"] == checkpoint.FORMAT
    assert header["library"] == mmes.__version__


def test_equal_states_make_equal_files(tmp_path):
    for name in "ab":
        checkpoint.write(tmp_path / name, {"n": 3}, {"x": np.arange(3.0)})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_objects_are_not_stored(tmp_path):
    with pytest.raises(TypeError, match="'x' has the type object"):
        checkpoint.write(tmp_path / "a", {}, {"x": np.array([print])})
    assert os.listdir(tmp_path) == []


def test_the_two_newest_are_kept(tmp_path):
    path = tmp_path / "run.mmes"
    for number in range(4):
        checkpoint.write(path, {"number": number}, {})
        newest = checkpoint.read(path)[0]
        assert newest == {"number": number}
        if number:
            before = checkpoint.read_one(checkpoint.previous_path(path))[0]
            assert before == {"number": number - 1}
    assert sorted(os.listdir(tmp_path)) == ["run.mmes", "run.mmes.previous"]


def test_two_writers_do_not_mix(tmp_path):
    path = tmp_path / "run.mmes"
    message = r"another process is writing .*run\.mmes;"
    with (
        files.new_file(checkpoint.partial_path(path)),
        pytest.raises(CheckpointError, match=message),
    ):
        checkpoint.write(path, {}, {})


def test_neither_writing_nor_reading_copies_large_arrays(tmp_path):
    state = {"x": np.zeros(8_000_000)}  # 64 MB
    path = tmp_path / "run.mmes"
    tracemalloc.start()
    try:
        checkpoint.write(path, {}, state)
        found = checkpoint.read(path)[1]
        assert np.array_equal(found["x"][:5], np.zeros(5))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


def test_without_a_checkpoint_there_is_nothing_to_resume(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        mmes.resume(tmp_path / "nowhere.mmes", hostile.sphere)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        mmes.resume(tmp_path, hostile.sphere)


# How runs use it


def test_a_new_run_never_overwrites_a_checkpoint(tmp_path):
    path = tmp_path / "run.mmes"
    run_with(path)
    before = path.read_bytes()
    with pytest.raises(CheckpointExists, match=r"already exists: resume it with mmes\.resume"):
        run_with(path)
    os.rename(path, checkpoint.previous_path(path))
    with pytest.raises(CheckpointExists):
        run_with(path)
    assert checkpoint.previous_path(path).read_bytes() == before


def test_resume_auto_starts_or_goes_on(tmp_path):
    path = tmp_path / "run.mmes"
    whole = mmes.minimize(hostile.sphere, *START, seed=5, max_evaluations=300)
    for budget in (50, 120, 300):
        result = run_with(path, max_evaluations=budget, resume="auto")
        assert result.nfev == budget
    assert np.array_equal(result.x, whole.x)


def test_resume_auto_takes_the_seed_of_the_checkpoint(tmp_path):
    path = tmp_path / "run.mmes"
    options = {"checkpoint": path, "resume": "auto"}
    first = mmes.minimize(hostile.sphere, *START, max_evaluations=50, **options)
    second = mmes.minimize(hostile.sphere, *START, max_evaluations=90, **options)
    assert second.seed == first.seed


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": 6}, "seed is 6 here and was 5"),
        ({"population_size": 20}, "population_size is 20 here and was None"),
        ({"bounds": (-2.0, 2.0)}, "lower differs"),
        ({"scale": np.full(6, 2.0)}, "scale differs"),
    ],
)
def test_resume_auto_refuses_the_checkpoint_of_another_run(tmp_path, changed, message):
    path = tmp_path / "run.mmes"
    run_with(path)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=f"another run: {message}"):
        run_with(path, resume="auto", **changed)
    assert path.read_bytes() == before


def test_resume_auto_needs_a_file():
    with pytest.raises(ValueError, match="needs checkpoint="):
        mmes.minimize(hostile.sphere, *START, resume="auto")


def test_what_shapes_the_search_cannot_change_on_resuming(tmp_path):
    path = tmp_path / "run.mmes"
    run_with(path)
    with pytest.raises(TypeError, match="population_size cannot change when a run is resumed"):
        mmes.resume(path, hostile.sphere, population_size=7)


def test_limits_stay_unless_they_are_changed(tmp_path):
    path = tmp_path / "run.mmes"
    run_with(path, max_evaluations=100, target=1e-3)
    assert mmes.resume(path, hostile.sphere).nfev == 99  # one is kept to confirm the target
    result = mmes.resume(path, hostile.sphere, max_evaluations=None)
    assert result.reason is mmes.StopReason.TARGET_REACHED
    assert result.nfev > 100


def test_the_path_may_be_relative_and_the_folder_may_change(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)

    def moves(x):
        os.chdir(tmp_path / "a")
        return hostile.sphere(x)

    mmes.minimize(moves, *START, max_evaluations=50, checkpoint="run.mmes")
    assert (tmp_path / "run.mmes").exists()


@pytest.mark.parametrize(
    ("path", "kind", "message"),
    [
        ("{}/no/run.mmes", FileNotFoundError, "the folder of the checkpoint, .*does not exist"),
        ("{}", IsADirectoryError, "is a folder"),
        (7, TypeError, "checkpoint must be the path of a file, not 7"),
    ],
)
def test_a_path_that_cannot_work_is_refused_before_the_run(tmp_path, path, kind, message):
    path = path.format(tmp_path) if isinstance(path, str) else path
    with pytest.raises(kind, match=message):
        mmes.Run(hostile.sphere, *START, checkpoint=path)


def test_generations_between_checkpoints(tmp_path):
    path = tmp_path / "run.mmes"
    seen = []

    def callback(progress):
        if path.exists():
            seen.append((progress.generation, checkpoint.read(path)[0]["generations"]))

    run_with(path, callback=callback, checkpoint_generations=3, max_evaluations=200)
    assert seen[:4] == [(4, 3), (5, 3), (6, 3), (7, 6)]
    assert all(now - saved <= 3 for now, saved in seen)


def test_seconds_between_checkpoints(tmp_path, monkeypatch):
    """A state that takes long to write is written less often: a tenth of the time at most."""
    now, took, written = [1000.0], [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def write(*_):
        written.append(now[0])
        now[0] += took[0]

    monkeypatch.setattr(checkpoint, "write", write)
    saver = Saver(
        tmp_path / "run.mmes",
        {"checkpoint_seconds": 60.0, "checkpoint_generations": None, "checkpoint_strict": False},
    )
    saver.begin(0)
    for _ in range(200):
        now[0] += 1
        saver.save_if_due(1, lambda: {"arrays": {}})
    assert written == [1060, 1120, 1180]
    took[0] = 20.0
    now[0], written[:] = 1240.0, []
    for _ in range(500):
        now[0] += 1
        saver.save_if_due(1, lambda: {"arrays": {}})
    assert written[0] == 1241
    assert written[1] == 1241 + 20 + 200


def test_a_state_on_a_smaller_machine_keeps_its_archive(tmp_path, monkeypatch):
    path = tmp_path / "run.mmes"
    start = (np.ones(2000), 0.5)
    whole = mmes.minimize(hostile.sphere, *start, seed=1, max_evaluations=400)
    mmes.minimize(hostile.sphere, *start, seed=1, max_evaluations=200, checkpoint=path)
    monkeypatch.setattr("mmes.base.memory.available_bytes", lambda: 1_300_000)
    with pytest.raises(MemoryError, match="archive of m = 90"):
        mmes.resume(path, hostile.sphere, max_evaluations=400)
    monkeypatch.undo()
    result = mmes.resume(path, hostile.sphere, max_evaluations=400)
    assert np.array_equal(result.x, whole.x)


def test_notes_of_the_caller_are_kept(tmp_path):
    run = mmes.Run(hostile.sphere, *START, checkpoint=tmp_path / "run.mmes", max_evaluations=20)
    run.notes = {"who": "me"}
    run.run()
    again = mmes.Run.from_state(
        dict(zip(("arrays",), checkpoint.read(tmp_path / "run.mmes")[1:], strict=True))
        | checkpoint.read(tmp_path / "run.mmes")[0],
        hostile.sphere,
    )
    assert again.notes == {"who": "me"}


@pytest.mark.parametrize(
    ("strategy", "words"),
    [("auto", "active-cma (auto: n = 10 is at most 100)"), ("mmes", "mmes")],
)
def test_why_a_strategy_was_taken_is_kept(tmp_path, strategy, words):
    path = tmp_path / "run.mmes"
    options = {"strategy": strategy, "seed": 1, "checkpoint": path}
    first = mmes.minimize(hostile.sphere, np.ones(10), 0.5, max_evaluations=100, **options)
    assert first.strategy == words
    assert mmes.resume(path, hostile.sphere, max_evaluations=200).strategy == words
    # Once more: a run that was resumed writes it too.
    assert mmes.resume(path, hostile.sphere, max_evaluations=300).strategy == words


def test_checkpoints_that_do_not_say_why_are_read(tmp_path):
    path = tmp_path / "run.mmes"
    mmes.minimize(hostile.sphere, np.ones(10), 0.5, max_evaluations=100, seed=1, checkpoint=path)
    entries, arrays = checkpoint.read(path)
    checkpoint.write(path, entries | {"why": 3}, arrays)
    with pytest.raises(CheckpointCorrupt, match="why must be a text, not 3"):
        mmes.resume(path, hostile.sphere)
    del entries["why"]
    checkpoint.write(path, entries, arrays)
    assert mmes.resume(path, hostile.sphere).strategy == "active-cma"


def test_a_state_in_memory_goes_on_too():
    run = mmes.Run(hostile.sphere, *START, seed=5, max_evaluations=100)
    run.run()
    state = run.state()
    whole = mmes.minimize(hostile.sphere, *START, seed=5, max_evaluations=250)
    again = mmes.Run.from_state(state, hostile.sphere, max_evaluations=250).run()
    assert np.array_equal(again.x, whole.x)


def test_a_warning_points_at_the_line_of_the_user(tmp_path):
    path = tmp_path / "run.mmes"
    run_with(path)
    run_with_previous = checkpoint.previous_path(path)
    os.rename(path, run_with_previous)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        mmes.resume(path, hostile.sphere)
    assert [w.category for w in said] == [CheckpointWarning]
    assert said[0].filename == __file__
    assert "run.mmes is missing; the previous one" in str(said[0].message)
