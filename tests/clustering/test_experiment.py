from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.io

from mmes.clustering import Protocol, experiment
from mmes.clustering.experiment import Run, Store, Task, main, run_all, run_task, summarise

QUICK = Protocol(max_evaluations=300)


def tasks(count: int = 2) -> list[Task]:
    return [
        Task("colon", 0.01, method, seed, QUICK)
        for seed in range(1, count + 1)
        for method in ("mmes", "gsc")
    ]


def finished(method: str, seed: int, value: float, name: str = "colon") -> Run:
    return Run(name, 0.01, method, seed, QUICK, value, 1000 * seed, 0.1)


def test_a_finished_run_is_not_repeated(tmp_path, monkeypatch):
    store = Store(tmp_path / "new" / "runs.jsonl")
    first = list(run_all(tasks(1), store))
    assert [run.method for run in first] == ["mmes", "gsc"]
    assert store.runs() == first
    done = []

    def counted(task: Task) -> Run:
        done.append(task)
        return run_task(task)

    monkeypatch.setattr(experiment, "run_task", counted)
    list(run_all(tasks(2), store))
    assert [(task.method, task.seed) for task in done] == [("mmes", 2), ("gsc", 2)]
    assert len(store.runs()) == 4


def test_other_settings_are_other_runs():
    task = Task("colon", 0.01, "mmes", 1, QUICK)
    assert task.key != Task("colon", 0.01, "mmes", 1, Protocol()).key
    # The rivals know no such settings.
    assert Task("colon", 0.01, "gsc", 1, QUICK).key == Task("colon", 0.01, "gsc", 1).key


def test_a_line_cut_off_by_a_crash_is_done_again(tmp_path):
    store = Store(tmp_path / "runs.jsonl")
    runs = list(run_all(tasks(1), store))
    whole = store.path.read_text()
    store.path.write_text(whole[:-20])
    assert store.runs() == runs[:1]
    list(run_all(tasks(1), store))
    again = store.runs()
    assert [run.key for run in again] == [run.key for run in runs]
    assert [run.value for run in again] == [run.value for run in runs]


def test_a_damaged_line_in_the_middle_is_an_error(tmp_path):
    store = Store(tmp_path / "runs.jsonl")
    store.path.write_text('{"half": \n' + json.dumps({"a": 1}) + "\n")
    with pytest.raises(ValueError, match=r"runs.jsonl, line 1: not a run"):
        store.runs()


def test_two_processes_give_the_same_runs(tmp_path):
    alone, together = Store(tmp_path / "1.jsonl"), Store(tmp_path / "2.jsonl")
    list(run_all(tasks(1), alone))
    list(run_all(tasks(1), together, jobs=2))
    values = [sorted((run.key, run.value) for run in store.runs()) for store in (alone, together)]
    assert values[0] == values[1]


def test_all_methods_start_at_the_same_point():
    values = {}
    for method in experiment.METHODS:
        run = run_task(Task("GLIOMA", 1e-4, method, 1, Protocol(max_evaluations=30_000)))
        values[method] = run.value
    assert values["mmes"] == pytest.approx(0.214111, rel=5e-6)
    assert values["gsc"] == pytest.approx(values["smoothed"], rel=1e-5)


def test_summary_and_marks():
    ours, theirs = [0.5, 0.52, 0.51, 0.53, 0.49], [0.6, 0.62, 0.61, 0.63, 0.59]
    runs = [finished("mmes", seed, value) for seed, value in enumerate(ours, 1)]
    runs += [finished("gsc", seed, value) for seed, value in enumerate(theirs, 1)]
    runs += [finished("mmes", 1, 7.0, "my own")]
    colon, own = summarise(reversed(runs))
    assert (colon.data_set, own.data_set) == ("colon", "my own")
    assert colon.median("mmes") == 0.51
    assert colon.evaluations == 3000
    assert colon.deviation == pytest.approx(0.51 / 0.533337 - 1)
    assert colon.mark == "mmes_better"
    assert np.isnan(own.median("gsc"))
    assert own.mark == ""
    swapped = [
        finished("gsc" if run.method == "mmes" else "mmes", run.seed, run.value)
        for run in runs[:10]
    ]
    assert summarise(swapped)[0].mark == "mmes_worse"
    alike = [
        finished(method, seed, seed / 10) for method in ("mmes", "gsc") for seed in range(1, 6)
    ]
    assert summarise(alike)[0].mark == "no_difference"


class TestCommand:
    def test_it_prints_the_table_and_continues(self, tmp_path, capsys):
        store = tmp_path / "runs.jsonl"
        given = [str(store), "--sets", "colon", "--betas", "0.01", "--max-evaluations", "300"]
        assert main([*given, "--runs", "1"]) == 0
        output = capsys.readouterr()
        assert "| colon | 0.01 | 1 |" in output.out
        assert "| 0.533337 |" in output.out
        assert "colon 0.01 mmes seed 1" in output.err
        assert main([*given, "--runs", "2"]) == 0
        output = capsys.readouterr()
        assert "seed 1" not in output.err
        assert "| colon | 0.01 | 2 |" in output.out
        # The table alone: of all seeds in the file, with these settings.
        assert main([*given, "--table"]) == 0
        output = capsys.readouterr()
        assert "| colon | 0.01 | 2 |" in output.out
        assert output.err == ""
        assert main([str(store), "--table"]) == 0
        assert "| colon | 0.01 | 0 |" in capsys.readouterr().out

    def test_a_file_of_the_user(self, tmp_path, capsys):
        rng = np.random.default_rng(1)
        features = np.vstack([rng.standard_normal((10, 4)) + shift for shift in (5, -5)])
        scipy.io.savemat(tmp_path / "x.mat", {"X": features, "Y": np.repeat([1, 2], 10)})
        given = ["--sets", "GLI-85", "--betas", "0.01", "--runs", "1", "--max-evaluations", "300"]
        status = main([str(tmp_path / "r.jsonl"), *given, "--mat", f"GLI-85={tmp_path / 'x.mat'}"])
        assert status == 0
        assert "| GLI-85 | 0.01 | 1 |" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (["--sets", "mars"], "there is no data set 'mars'"),
            (["--mat", "nothing"], "--mat takes NAME=FILE, not 'nothing'"),
            (["--mat", "a=/no/such/file.mat"], "there is no file /no/such/file.mat"),
            (["--runs", "0"], "--runs and --jobs must be at least 1"),
            (["--restarts", "many"], "--restarts takes a number or 'budget', not 'many'"),
            (["--max-evaluations", "0"], "max_evaluations is 0"),
        ],
    )
    def test_mistakes_are_named(self, tmp_path, capsys, given, message):
        assert main([str(tmp_path / "r.jsonl"), *given]) == 2
        assert message in capsys.readouterr().err
