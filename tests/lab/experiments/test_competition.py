"""A competition: the suite's rules, exact values at the checkpoints, points, and a list of runs."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

import mmes.lab.experiments.reproduce as carrying_out
from mmes import problems
from mmes.cli import main
from mmes.lab.experiments.analysis.standings import count, points, standings, value_after
from mmes.lab.experiments.availability import refuse_mistakes
from mmes.lab.experiments.competition import Competition, competitor, finished_runs
from mmes.lab.experiments.execute import Observed, perform, with_records
from mmes.lab.experiments.plan import PlanError, Strategy
from mmes.lab.experiments.results.single_runs import runs_as_csv, take_over
from mmes.lab.experiments.results.store import Store
from pretended import make_outcome

MMES = competitor("mmes", {})


def competition(**changes) -> Competition:
    fields = {"suite": "lsgo2013", "strategies": (MMES,), "seeds": (1,)}
    return Competition(**(fields | changes))


class TestWhatIsRun:
    def test_all_functions_under_the_rules_of_the_suite(self):
        runs = competition(seeds=(1, 2)).runs()
        assert len(runs) == 15 * 2
        assert [run.objective.name for run in runs[:2]] == ["lsgo2013/f1", "lsgo2013/f2"]
        assert [run.seed for run in runs] == [1] * 15 + [2] * 15  # every cell once before any twice
        assert {run.dimension for run in runs} == {1000, 905}
        rules = {(r.max_evaluations, r.target, r.start, r.sigma0, r.bounds) for r in runs}
        assert rules == {(3_000_000, None, None, None, "clip")}
        assert runs[0].record_at == (120_000, 600_000, 3_000_000)
        assert len(competition(suite="lsgo2010").runs()) == 20

    def test_the_key_names_suite_function_strategy_seed_and_budget(self):
        base = competition().runs()[0].key
        others = [
            competition(suite="lsgo2010"),
            competition(functions=("f2",)),
            competition(strategies=(competitor("mmes", {"mixing": 2}),)),
            competition(seeds=(2,)),
            competition(budget=100),
        ]
        assert base not in [other.runs()[0].key for other in others]
        assert competition(checkpoints=(5,)).runs()[0].key == base

    def test_the_default_competes_by_its_name(self):
        """Failed before: 'auto' was refused."""
        auto = competitor(" AUTO ", {})
        assert (auto.name, auto.label) == ("auto", "auto")
        run = competition(strategies=(auto,), functions=("f1",), budget=300).runs()[0]
        refuse_mistakes([run])
        named = perform(replace(run, strategy=competitor("adaptive", {})))
        assert perform(run).best == named.best

    def test_labels_are_those_of_the_paper(self):
        assert MMES.label == "MMES"
        assert dict(MMES.options) == {"restarts": "unlimited"}
        assert competitor("mmes", {"mixing": 2}).label == "MMES, mixing=2"
        assert competitor("mmes", {"mixing": 2, "label": "two"}).label == "two"

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"suite": "lsgo2011"}, "suite must be one of lsgo2010, lsgo2013, not 'lsgo2011'"),
            ({"functions": ("f16",)}, "one of f1 to f15 of lsgo2013, not 'f16'"),
        ],
    )
    def test_mistakes(self, changes, sentence):
        with pytest.raises(PlanError, match=sentence):
            competition(**changes)


class TestRecords:
    def test_the_best_value_is_recorded_within_a_batch(self):
        objective = Observed(lambda points: points[:, 0], record_at=(6, 3, 5))
        objective(np.array([[5.0], [4.0]]))
        objective(np.array([[3.0], [np.nan], [1.0], [0.0]]))
        assert objective.records == [(3, 3.0), (5, 1.0), (6, 0.0)]

    def test_a_record_is_put_into_the_trace_once(self):
        trace = (np.array([2.0, 6.0]), np.array([4.0, 0.0]), np.array([1.0, 0.5]))
        evaluations, best, sigma = with_records(trace, [(3, 3.0), (6, 0.0)])
        assert evaluations.tolist() == [2.0, 3.0, 6.0]
        assert best.tolist() == [4.0, 3.0, 0.0]
        assert sigma.tolist() == [1.0, 1.0, 0.5]

    def test_values_at_checkpoints_are_those_of_the_evaluations_made(self):
        """Against every value that was computed, at checkpoints that cut a generation."""
        (run,) = competition(functions=("f1",), budget=1000, checkpoints=(100, 500)).runs()
        seen: list[float] = []
        problem = problems.get("lsgo2013/f1")
        inner = type(problem.batch).__call__

        def noted(self, points):
            values = inner(self, points)
            seen.extend(values.tolist())
            return values

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(problem.batch), "__call__", noted)
            result = perform(run)
        assert len(seen) == 1000
        for mark in (100, 500, 1000):
            assert value_after(result, mark) == min(seen[:mark])


class TestStandings:
    def test_points_by_rank_and_ties_share(self):
        assert points({"a": 1.0, "b": 3.0, "c": 2.0}) == {"a": 25.0, "b": 15.0, "c": 18.0}
        assert points({"a": 1.0, "b": 1.0, "c": 2.0}) == {"a": 21.5, "b": 21.5, "c": 15.0}
        many = points({str(i): float(i) for i in range(12)})
        assert [many["9"], many["10"], many["11"]] == [1.0, 0.0, 0.0]
        assert sum(many.values()) == 101.0

    def test_five_statistics_ranks_points_and_quotations(self):
        strategies = (MMES, competitor("mmes", {"mixing": 2, "label": "two"}))
        entry = competition(strategies=strategies, functions=("f1", "f13"), seeds=(1, 2, 3))
        runs = sorted(entry.runs(), key=lambda run: (run.objective.label, run.strategy.label))
        results = {}
        for run in runs:
            # "two" is better on f1 and worse on f13; seeds give 1, 2, 4 times the value.
            good = (run.strategy.label == "two") == (run.objective.label == "f1")
            best = (1e3 if good else 1e5) * (1, 2, 4)[run.seed - 1]
            results[run.key] = make_outcome(
                trace_evaluations=np.array([120_000.0, 600_000.0, 3_000_000.0]),
                trace_best=best * np.array([100.0, 10.0, 1.0]),
                trace_sigma=np.ones(3),
            )
        marks = (600_000, 3_000_000)
        tables = {t.name: t for t in standings("lsgo2013", runs, results, marks).tables}
        statistics = {
            line.label: line.cells["MMES"].ours for line in tables["statistics-3000000"].lines
        }
        assert [statistics[f"f1 {name}"] for name in ("best", "median", "worst")] == [1e5, 2e5, 4e5]
        assert statistics["f1 mean"] == pytest.approx(7e5 / 3)
        assert statistics["f1 sd"] == pytest.approx(np.std([1e5, 2e5, 4e5], ddof=1))
        early = {line.label: line.cells["two"].ours for line in tables["statistics-600000"].lines}
        assert early["f1 median"] == 2e4
        medians = tables["medians-3000000"]
        assert (medians.lines[0].cells["MOS"].paper, medians.lines[0].cells["MOS"].paper_mark) == (
            0.0,
            None,
        )
        assert medians.lines[0].cells["MMES"].paper == 10500.0
        ranked = dict(medians.footers)["average rank (ours, 2 rows)"]
        assert ranked == {"MMES": "1.50", "two": "1.50"}
        totals = dict(tables["points"].footers)
        assert totals["total after 3e6 (over 2 of 2)"] == {"MMES": "43", "two": "43"}
        assert totals["total of all checkpoints"] == {"MMES": "86", "two": "86"}
        field = tables["points-quoted"].lines[0].cells
        assert field["MOS (quoted)"].ours == 25.0
        assert sum(cell.ours or 0.0 for cell in field.values()) == 98.0  # the first eight places
        ratios = tables["quoted-ratios"]
        assert ratios.columns == ("MMES",)
        assert ratios.lines[0].cells["MMES"].ours == pytest.approx(2e5 / 10500.0)
        assert dict(ratios.footers)["worse by more"] == {"MMES": "1 of 2"}
        assert dict(ratios.footers)["better by more"] == {"MMES": "1 of 2"}
        text = runs_as_csv(runs, results, marks)
        rows = list(csv.DictReader(text.splitlines()))
        assert len(rows) == len(runs)
        assert {float(row["best_at_3000000"]) for row in rows} == {
            c * x for c in (1, 2, 4) for x in (1e3, 1e5)
        }

    def test_counts_are_written_short(self):
        assert [count(x) for x in (5000, 120_000, 3_000_000)] == ["5000", "1.2e5", "3e6"]


def test_the_command_goes_on_and_takes_others_in(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(carrying_out, "write_figure", lambda chart, folder: [])
    given = ["compete", "lsgo2010", "--function", "f1", "--budget", "200", "--checkpoints", "1e2",
             "--out", str(tmp_path), "--workers", "1", "--no-report"]  # fmt: skip
    assert main([*given, "--seeds", "1"]) == 0
    assert "1 run finished" in capsys.readouterr().out
    assert main([*given, "--seeds", "1-2", "--part", "2/2"]) == 0
    assert "1 run finished;" in capsys.readouterr().out
    assert main([*given, "--seeds", "2", "--strategy", "mmes,mixing=2"]) == 0
    text = capsys.readouterr().out
    assert "2 runs finished" in text
    assert "MMES, mixing=2" in text
    assert "Points of the competition after 200 evaluations" in text
    assert len(Store(tmp_path / "runs").rows()) == 4
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 1 + 4
    assert "quoted" not in text  # the published medians belong to another budget


def test_a_list_of_runs_is_taken_over(tmp_path, capsys, monkeypatch):
    """Tables from the list are those from the runs; what is in it is not run again."""
    monkeypatch.setattr(carrying_out, "write_figure", lambda chart, folder: [])
    given = ["compete", "lsgo2010", "--function", "f1", "--function", "f2", "--budget", "200",
             "--checkpoints", "100", "--seeds", "2", "--workers", "1", "--no-report"]  # fmt: skip
    assert main([*given, "--strategy", "mmes,mixing=2", "--out", str(tmp_path / "a")]) == 0
    capsys.readouterr()
    listed = tmp_path / "a" / "runs.csv"
    again = [*given, "--strategy", "mmes,mixing=2", "--out", str(tmp_path / "b")]
    assert main([*again, "--take-over", str(listed)]) == 0
    text = capsys.readouterr().out
    assert "4 runs imported" in text
    assert "0 runs finished, 4 already stored" in text
    assert (tmp_path / "b" / "runs.csv").read_text() == listed.read_text()
    for name in ("statistics-100.csv", "points.csv", "medians-200.csv"):
        assert (tmp_path / "b/tables" / name).read_text() == (
            tmp_path / "a/tables" / name
        ).read_text()
    assert take_over(listed, Store(tmp_path / "b" / "runs")) == 0


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a,b\n1,2\n", "has no column 'problem'"),
        ("problem,strategy,label,options,seed,budget,best_at_9,evaluations,restarts,cpu_seconds,"
         "started,mmes,key\nlsgo2010/f1,mmes,,,x,9,1,9,0,1,,0,0123456789abcdef\n",
         "line 2: invalid literal"),
        ("problem,strategy,label,options,seed,budget,best_at_9,evaluations,restarts,cpu_seconds,"
         "started,mmes,key\nclustering/x.mat,mmes,,,1,9,1,9,0,1,,0,0123456789abcdef\n",
         "line 2: problem must be a function of a suite"),
    ],
)  # fmt: skip
def test_another_file_is_not_taken_over(content, sentence, tmp_path):
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(ValueError, match=sentence):
        take_over(tmp_path / "x.csv", Store(tmp_path / "runs"))


@pytest.mark.parametrize("key", ["../../precious", "", "0123456789ABCDEF", "0123456789abcdef0"])
def test_a_key_of_a_file_leads_nowhere_else(key, tmp_path, capsys):
    """Failed before: it overwrote a .parquet and deleted a .json file outside its folder."""
    kept = [tmp_path / "precious.parquet", tmp_path / "runs" / "precious.json"]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_text("precious")
    store = Store(tmp_path / "runs" / "a" / "runs")
    (tmp_path / "bad.csv").write_text(
        "problem,strategy,label,options,seed,budget,best_at_9,evaluations,restarts,cpu_seconds,"
        "started,mmes,key\nlsgo2010/f1,mmes,,,1,9,1,9,0,1,,0,0123456789abcdef\n"
        f"lsgo2010/f1,mmes,,,1,9,1,9,0,1,,0,{key}\n"
    )
    with pytest.raises(ValueError, match="line 3: key must be 16 hexadecimal digits, not"):
        take_over(tmp_path / "bad.csv", store)
    assert not store.folder.exists()
    assert [path.read_text() for path in kept] == ["precious"] * 2
    given = ["compete", "lsgo2010", "--out", str(tmp_path / "out"), "--no-report"]
    assert main([*given, "--take-over", str(tmp_path / "bad.csv")]) == 2
    assert "key must be 16 hexadecimal digits" in capsys.readouterr().err


def test_old_runs_are_shown_under_the_name_of_today(tmp_path):
    store = Store(tmp_path)
    (run,) = competition(functions=("f1",), strategies=(Strategy("mmes", "mmes"),)).runs()
    store.write(run, make_outcome())
    (found,), _ = finished_runs(store, "lsgo2013", 3_000_000)
    assert (found.strategy.label, found.key) == ("MMES", run.key)


def test_the_report_of_a_competition(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(carrying_out, "write_figure", lambda chart, folder: [])
    given = ["compete", "lsgo2013", "--function", "f3", "--budget", "100", "--seeds", "2"]
    assert main([*given, "--out", str(tmp_path), "--workers", "1"]) == 0
    text = (tmp_path / "report.html").read_text()
    assert "Competition on lsgo2013" in text
    assert "Points of the competition" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["lsgo2014"], "suite must be one of"),
        (["lsgo2013", "--seeds", "3-1"], "--seeds must be a number K or a range I-K, not '3-1'"),
        (["lsgo2013", "--seeds", "1000000000000"], "seeds must be at most 1,000,000 in number"),
        (["lsgo2013", "--seeds", f"{2**63}-{2**63}"], "--seeds must be at most 2^63 - 1"),
        (["lsgo2013", "--strategy", "mmes,label==1+1"], "not begin with =, +, - or @"),
        (["lsgo2013", "--budget", "0"], "--budget must be an integer from 1 to 2^63 - 1, not 0"),
        (["lsgo2013", "--strategy", "mmess"], "there is no strategy 'mmess'"),
        (["lsgo2013", "--strategy", "mmes,mixing"], "--strategy must be NAME=VALUE, not 'mixing'"),
    ],
)
def test_mistakes_of_the_command(arguments, sentence, capsys, tmp_path):
    assert main(["compete", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
