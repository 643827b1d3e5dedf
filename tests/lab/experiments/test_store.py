"""Stored runs come back as they went in, survive broken files and merge by copying."""

from __future__ import annotations

import shutil

import numpy as np
import polars
import pytest

from mmes.checkpoint.files import plain_name, write_atomically
from mmes.lab.experiments.analysis.statistics import first_hits
from mmes.lab.experiments.objectives import named_file
from mmes.lab.experiments.results.store import Store, StoreError, thin
from pretended import make_outcome, make_run


def test_what_is_written_is_read(tmp_path):
    store, run, outcome = Store(tmp_path), make_run(1), make_outcome()
    store.write(run, outcome)
    found = store.outcomes([run])[run.key]
    assert found.versions == outcome.versions
    assert found.trace_best.tolist() == outcome.trace_best.tolist()
    assert (found.best, found.evaluations, found.reached) == (1e-9, 100, True)
    assert store.finished() == {run.key}
    assert store.outcomes([make_run(2)]) == {}


def test_missing_numbers_and_infinities_survive(tmp_path):
    store = Store(tmp_path)
    run = make_run(1, target=None, sigma0=None, start=None)
    store.write(run, make_outcome(best=float("inf"), trace_sigma=np.array([np.nan, 1.0, 1.0])))
    row = store.rows()[0]
    assert row["target"] is None
    assert row["start"] == "box"
    found = store.outcomes()[run.key]
    assert found.best == float("inf")
    assert np.isnan(found.trace_sigma[0])
    assert found.cost == float("inf")


def test_writing_twice_leaves_one(tmp_path):
    store = Store(tmp_path)
    store.write(make_run(1), make_outcome())
    store.write(make_run(1), make_outcome())
    assert len(store.rows()) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_folders_merge_by_copying(tmp_path):
    first, second = Store(tmp_path / "a"), Store(tmp_path / "b")
    for seed in (1, 2):
        first.write(make_run(seed), make_outcome(seed))
    for seed in (2, 3):
        second.write(make_run(seed), make_outcome(seed))
    shutil.copytree(second.folder, first.folder, dirs_exist_ok=True)
    assert {row["seed"] for row in first.rows()} == {1, 2, 3}
    assert len(first.rows()) == 3


def test_a_file_cut_short_counts_as_missing_and_is_named(tmp_path):
    store = Store(tmp_path)
    for seed in (1, 2):
        store.write(make_run(seed), make_outcome(seed))
    path = store.path(make_run(1).key)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(UserWarning, match="counts as missing"):
        assert store.finished() == {make_run(2).key}


def test_files_of_a_newer_schema_and_strange_files_are_refused(tmp_path):
    store = Store(tmp_path)
    store.write(make_run(1), make_outcome())
    path = store.path(make_run(1).key)
    frame = polars.read_parquet(path)
    frame.with_columns(schema=polars.lit(99)).write_parquet(path)
    with pytest.raises(StoreError, match="schema 99"):
        store.rows()
    polars.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(StoreError, match="not one of runs"):
        store.rows()


def test_a_key_in_a_stored_file_is_checked(tmp_path):
    """Failed before: whatever a file called its key was taken for one."""
    store = Store(tmp_path)
    store.write(make_run(1), make_outcome())
    path = store.path(make_run(1).key)
    polars.read_parquet(path).with_columns(key=polars.lit("../x")).write_parquet(path)
    with pytest.raises(StoreError, match=r"key must be 16 hexadecimal digits, not '\.\./x'"):
        store.rows()
    for name in (store.path, store.failure_path):
        with pytest.raises(ValueError, match="hexadecimal"):
            name("../../x")


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", ".hidden", "", "c:x", "x\0"])
def test_a_name_that_leads_elsewhere_is_refused(name):
    with pytest.raises(ValueError, match="is not a valid file name here"):
        plain_name(name)
    assert plain_name("convergence-f1.svg") == "convergence-f1.svg"


def test_an_interrupted_write_leaves_nothing(tmp_path):
    def interrupted(file):
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "x.parquet", interrupted)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_noted_until_the_run_succeeds(tmp_path):
    store, run = Store(tmp_path), make_run(1)
    store.write_failure(run, "ValueError: no")
    assert store.failures()[0]["message"] == "ValueError: no"
    assert store.finished() == set()
    store.write(run, make_outcome())
    assert store.failures() == []


def test_thinning_keeps_the_ends_and_the_runtimes_to_targets():
    evaluations = np.arange(1, 100_001) * 24.0
    best = 1e5 * np.exp(-np.linspace(0.0, 30.0, 100_000))
    kept = thin(evaluations, best, limit=256)
    assert kept.size <= 260
    assert kept[0] == 0
    assert kept[-1] == 99_999
    targets = 10.0 ** np.arange(4, -8, -1)
    exact = first_hits(evaluations, best, targets)
    assert first_hits(evaluations[kept], best[kept], targets).tolist() == exact.tolist()


def test_short_traces_are_kept_whole():
    assert thin(np.arange(5.0), np.arange(5.0)).tolist() == [0, 1, 2, 3, 4]


def test_the_name_of_a_suites_function_is_kept_whole(tmp_path) -> None:
    """f4 of 2010 and f4 of 2013 are different problems; only a user's file loses its folder."""
    for name, kept in (("lsgo2010/f4", "lsgo2010/f4"), (f"{tmp_path}/mine.py:f", "mine.py:f")):
        assert named_file(name)[1] == kept
