"""Runs are carried out once, in processes of their own, through failures, deaths and kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter

import psutil
import pytest

import pretended
from mmes.lab.experiments.results.store import Store
from mmes.lab.experiments.runner import THREAD_VARIABLES, execute, shard
from pretended import make_run


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "log"
    path.touch()
    monkeypatch.setenv("PRETENDED_LOG", str(path))
    return path


def begun(log) -> Counter[str]:
    return Counter(line.split()[0] for line in log.read_text().splitlines())


def workers_alive(log) -> list[int]:
    """Return the workers that have begun a run and are not gone; a zombie is gone."""
    numbers = {int(line.split()[1]) for line in log.read_text().splitlines()}
    return [p for p in numbers if psutil.pid_exists(p) and psutil.Process(p).status() != "zombie"]


def test_every_run_once_and_never_again(tmp_path, log):
    store, runs = Store(tmp_path / "runs"), [make_run(s) for s in range(5)]
    report = execute([*runs, *runs], store, workers=2, function=pretended.quick, show=False)
    assert (report.finished, report.skipped, report.failed) == (5, 0, {})
    again = execute(runs, store, workers=2, function=pretended.quick, show=False)
    assert (again.finished, again.skipped) == (0, 5)
    assert begun(log) == Counter({run.key: 1 for run in runs})


def test_a_failing_run_is_noted_and_the_others_go_on(tmp_path, log, capsys):
    store, runs = Store(tmp_path / "runs"), [make_run(s) for s in range(4)]
    report = execute(runs, store, workers=2, function=pretended.failing)
    assert report.failed == {make_run(2).key: "ValueError: seed 2 is unlucky"}
    assert report.finished == 3
    assert "failed: MMES on Cigar, n = 10, seed 2" in capsys.readouterr().err
    execute(runs, store, workers=1, function=pretended.failing, show=False)
    assert begun(log)[make_run(2).key] == 2


def test_a_killed_worker_costs_one_run_only(tmp_path, log):
    store, runs = Store(tmp_path / "runs"), [make_run(s) for s in range(5)]
    report = execute(runs, store, workers=2, function=pretended.dying, show=False)
    assert set(report.failed) == {make_run(2).key}
    assert store.finished() == {run.key for run in runs if run.seed != 2}


def test_no_run_is_begun_after_the_time_limit(tmp_path, log):
    report = execute(
        [make_run(s) for s in range(4)],
        Store(tmp_path / "runs"),
        workers=1,
        time_limit=0.0,
        function=pretended.quick,
        show=False,
    )
    assert (report.finished, report.postponed) == (0, 4)


def test_thread_counts_are_put_back(tmp_path, log, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    for name in set(THREAD_VARIABLES) - {"OMP_NUM_THREADS"}:
        monkeypatch.delenv(name, raising=False)
    execute([make_run(1)], Store(tmp_path), workers=1, function=pretended.quick, show=False)
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_shards_cover_everything_once():
    runs = [make_run(s) for s in range(7)]
    parts = [shard(runs, part, 3) for part in (1, 2, 3)]
    assert sorted(run.seed for part in parts for run in part) == list(range(7))
    with pytest.raises(ValueError, match="part must be between 1 and 3, not 4"):
        shard(runs, 4, 3)


def test_workers_must_be_positive(tmp_path):
    with pytest.raises(ValueError, match="workers must be at least 1"):
        execute([], Store(tmp_path), workers=0, show=False)


def wait_until(condition, seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.02)


def test_kill_9_loses_nothing_finished_and_repeats_nothing_finished(tmp_path, log, helpers):
    folder = tmp_path / "runs"
    store, runs = Store(folder), [make_run(s) for s in range(12)]
    script = (
        "import sys; sys.path.insert(0, sys.argv[2]); import pretended\n"
        "from mmes.lab.experiments.runner import execute\n"
        "from mmes.lab.experiments.results.store import Store\n"
        "if __name__ == '__main__':\n"
        "    runs = [pretended.make_run(s) for s in range(12)]\n"
        "    execute(runs, Store(sys.argv[1]), workers=2, function=pretended.gated, show=False)\n"
    )
    main = tmp_path / "main.py"
    main.write_text(script)
    command = [sys.executable, str(main), str(folder), str(helpers)]
    first = subprocess.Popen(command)
    wait_until(lambda: len(list(folder.glob("*.parquet"))) == 6 and len(begun(log)) == 8)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    # Two runs are in progress and would wait for ever: their workers must notice by themselves.
    wait_until(lambda: not workers_alive(log))
    stored = store.finished()
    assert stored == {run.key for run in runs if run.seed < 6}
    log.with_name(log.name + ".go").touch()
    subprocess.run(command, check=True, timeout=100)
    assert store.finished() == {run.key for run in runs}
    assert all(begun(log)[key] == 1 for key in stored)
