"""The commands: a plan in, tables and a report out, and clear answers to mistakes."""

from __future__ import annotations

import sys

import pytest

import mmes.lab.experiments.reproduce as carrying_out
from mmes.cli import main
from mmes.lab.experiments.results.single_runs import take_over_section
from mmes.lab.experiments.results.store import Store
from mmes.lab.experiments.sections import SECTIONS, Extent
from pretended import make_outcome

PLAN = """
name = "trial"
problems = ["mine.py:cost"]
dimensions = [10]
seeds = 2
max_evaluations = 2000
target = 1e-4
[[strategy]]
name = "mmes"
label = "MMES"
[[strategy]]
name = "mmes"
label = "l = 2"
mixing = 2
"""


@pytest.fixture(autouse=True)
def no_module_of_another_test(monkeypatch):
    """Every test has a mine.py of its own, and Python keeps one module of a name."""
    monkeypatch.delitem(sys.modules, "mine", raising=False)


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "mine.py").write_text("def cost(x):\n    return float(abs(x).sum())\n")
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [
        (["reproduce", "accuracy", "--quick"], "polars", "bench"),
        (["bench", "plan.toml"], "matplotlib", "bench"),
        (["compete", "lsgo2013", "--function", "f1", "--budget", "1000"], "jinja2", "report"),
    ],
)
def test_a_missing_extra_is_named_before_the_first_run(
    plan, monkeypatch, capsys, command, package, extra
):
    monkeypatch.chdir(plan.parent)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(command) == 2
    told = capsys.readouterr()
    assert f"{package} is needed for this; install it with: pip install 'mmes[{extra}]'" in told.err
    assert not told.out
    assert not (plan.parent / "out").exists()


def test_without_a_target_no_verdict_is_passed(plan, tmp_path, capsys, monkeypatch):
    """Failed before: a hidden target of 1e-8 made it "fail (0/2)"."""
    monkeypatch.setattr(carrying_out, "write_figure", lambda chart, folder: [])
    plan.write_text(PLAN.replace("target = 1e-4\n", "").replace("2000", "200"))
    out = tmp_path / "out"
    assert main(["bench", str(plan), "--out", str(out), "--workers", "1"]) == 0
    text = capsys.readouterr().out
    assert "Best values" in text
    assert "fail" not in text
    assert "to the target" not in text
    assert "target reached" not in (out / "report.html").read_text()
    assert {row["target"] for row in Store(out / "runs").rows()} == {None}


def test_bench_from_plan_to_report(plan, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    assert main(["bench", str(plan), "--out", str(out), "--workers", "2"]) == 0
    text = capsys.readouterr().out
    assert "4 runs finished" in text
    assert "Expected running time" in text
    assert (out / "report.html").is_file()
    assert (out / "tables" / "evaluations.tex").is_file()
    assert (out / "tables" / "ecdf.svg").is_file()
    assert len(Store(out / "runs").rows()) == 4
    monkeypatch.setattr(carrying_out, "write_figure", lambda chart, folder: [])
    assert main(["bench", str(plan), "--out", str(out), "--workers", "1", "--no-report"]) == 0
    assert "0 runs finished, 4 already stored" in capsys.readouterr().out
    # An edited function is another function.
    (tmp_path / "mine.py").write_text("def cost(x):\n    return float((x * x).sum())\n")
    assert main(["bench", str(plan), "--out", str(out), "--workers", "2", "--no-report"]) == 0
    assert "4 runs finished;" in capsys.readouterr().out


def test_parts_of_several_machines_make_one_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(carrying_out, "write_figure", lambda chart, folder: [])
    plan = tmp_path / "plan.toml"
    plan.write_text('problems = ["sphere"]\ndimensions = 5\nseeds = 4\nmax_evaluations = 50')
    for part in ("1/2", "2/2"):
        arguments = [str(plan), "--out", str(tmp_path / part[0]), "--part", part, "--no-report"]
        assert main(["bench", *arguments]) == 0
    first, second = (Store(tmp_path / p / "runs").finished() for p in "12")
    assert len(first) == len(second) == 2
    assert not first & second


def test_a_failing_function_is_told_and_leaves_an_exit_code(tmp_path, capsys):
    (tmp_path / "mine.py").write_text("def cost(x):\n    raise ArithmeticError('no luck')\n")
    path = tmp_path / "plan.toml"
    path.write_text(
        'problems = ["mine.py:cost"]\ndimensions = 5\nseeds = 1\nmax_evaluations = 50\n'
    )
    assert main(["bench", str(path), "--out", str(tmp_path / "out"), "--no-report"]) == 1
    assert "no luck" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "arguments", "sentence"),
    [
        ("bench", ["none.toml"], "there is no plan file none.toml"),
        ("reproduce", ["nothing"], "there is no section 'nothing'"),
        ("report", ["nowhere"], "there is no folder nowhere"),
    ],
)
def test_mistakes_get_one_sentence_and_code_2(command, arguments, sentence, capsys):
    assert main([command, *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error


def test_a_label_of_any_length_names_files(tmp_path):
    label = "a long story " * 24
    path = tmp_path / "plan.toml"
    path.write_text(
        f'problems = [{{name = "sphere", label = "{label}"}}]\n'
        "dimensions = 5\nseeds = 1\nmax_evaluations = 50\n"
    )
    assert main(["bench", str(path), "--out", str(tmp_path / "out"), "--workers", "1"]) == 0
    names = [file.name for file in (tmp_path / "out" / "tables").glob("convergence-*.svg")]
    assert len(names) == 1
    assert len(names[0]) < 120


def test_an_unknown_strategy_is_refused_before_anything_runs(tmp_path, capsys):
    path = tmp_path / "plan.toml"
    path.write_text('problems = ["sphere"]\nmax_evaluations = 50\n[[strategy]]\nname = "mmess"\n')
    assert main(["bench", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "there is no strategy 'mmess'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("problem", "strategy", "sentence"),
    [
        ('"sphere"', 'name = "mmes"\nmixng = 2', "mmes: it has no option 'mixng'; did you mean"),
        ('"sphere"', 'name = "mmes"\nmixing = -2', "strategy mmes: mixing must be"),
        ('"sphere"', 'name = "mmes"\nseed = 3', "it has no option 'seed'"),
        ('"sphere"', 'name = "mine.py:Mine"', "there is no file mine.py next to the plan"),
        ('{name = "sphere", alhpa = 2}', 'name = "mmes"', "sphere has no option 'alhpa'"),
        ('{name = "ellipsoid", alpha = 1e9}', 'name = "mmes"', "alpha must be a number from -300"),
        ('"clustering/colon"', 'name = "gsc"', "it needs the option beta"),
        ('{name = "clustering/colon", beta = 0.1}', 'name = "gsc"\ninit = "x"', "option 'init'"),
        ('{name = "clustering/colon", beta = 0.1}', 'name = "mmes"\ninit = "x"', "init is 'x'"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_runs(
    problem, strategy, sentence, tmp_path, capsys
):
    path = tmp_path / "plan.toml"
    path.write_text(f"problems = [{problem}]\nmax_evaluations = 50\n[[strategy]]\n{strategy}\n")
    assert main(["bench", str(path), "--out", str(tmp_path / "out")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("answer", ["None", "'1.5'", "[1.0, 2.0]"])
def test_what_is_no_number_is_no_value(answer, tmp_path, capsys):
    name = f"answers_{len(answer)}"
    (tmp_path / f"{name}.py").write_text(f"def cost(x):\n    return {answer}\n")
    path = tmp_path / "plan.toml"
    rest = "dimensions = 3\nseeds = 1\nmax_evaluations = 9\n"
    path.write_text(f'problems = ["{name}.py:cost"]\n{rest}')
    assert main(["bench", str(path), "--out", str(tmp_path / "out"), "--no-report"]) == 1
    assert "the objective must return one real number" in capsys.readouterr().err


def test_a_strategy_in_a_file(tmp_path, capsys):
    """It may import its neighbours, it is found next to the plan, and its content is in the key."""
    (tmp_path / "the_size.py").write_text("MIXING = 2\n")
    (tmp_path / "my_strategy.py").write_text(
        "from mmes.strategies import MMES\nfrom the_size import MIXING\n\n\n"
        "class Mine(MMES):\n    name = 'mine'\n"
        "    def __init__(self, *args, **options):\n"
        "        super().__init__(*args, **(options | {'mixing': MIXING}))\n"
    )
    path = tmp_path / "plan.toml"
    path.write_text(
        'problems = ["sphere"]\ndimensions = 10\nseeds = 1\nmax_evaluations = 300\n'
        '[[strategy]]\nname = "my_strategy.py:Mine"\n[[strategy]]\nname = "mmes"\nmixing = 2\n'
        'label = "two"\n'
    )
    given = ["bench", str(path), "--out", str(tmp_path / "out"), "--workers", "1", "--no-report"]
    assert main(given) == 0
    assert "my_strategy.py:Mine" in capsys.readouterr().out
    rows = Store(tmp_path / "out" / "runs").rows()
    assert {row["strategy"] for row in rows} == {"my_strategy.py:Mine", "mmes"}
    assert len({row["best"] for row in rows}) == 1
    assert len({row["key"] for row in rows}) == 2


@pytest.mark.parametrize(
    "arguments", [["--workers", "0"], ["--part", "3/2"], ["--time-limit", "x"]]
)
def test_bad_flags_are_refused(arguments, capsys):
    assert main(["bench", "plan.toml", *arguments]) == 2
    assert arguments[1] in capsys.readouterr().err


def test_listing_makes_no_run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "--list"]) == 0
    assert "basic" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def begun(tmp_path):
    """A folder with two of the three first runs of MMES on Cigar, n = 1000."""
    store = Store(tmp_path / "begun" / "runs")
    for run in SECTIONS["basic"].runs(Extent.FULL):
        if run.cell == ("Cigar", 1000, "MMES") and run.seed in (1, 3):
            store.write(run, make_outcome(run.seed, evaluations=197_000 + run.seed))
    return tmp_path / "begun"


MMES_ON_TWO = ["--strategy", "MMES", "--problem", "Cigar", "--problem", "Discus", "--seeds", "3"]


def test_listing_names_the_runs_that_are_missing(begun, capsys):
    given = ["reproduce", "basic", "--full", "--list", "--out", str(begun), *MMES_ON_TWO]
    assert main(given) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert "1600 runs, full" in first
    assert rest == [
        f"  2 of 6 runs are in {begun}; missing (finished of planned):",
        "  Discus, n = 1000: MMES 0 of 3",
        "  Cigar, n = 1000: MMES 2 of 3",
    ]


def test_the_single_runs_of_a_section_are_taken_over(begun, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(carrying_out, "write_figure", lambda chart, folder: [])
    quick = ["--time-limit", "1e-9", "--no-report", "--strategy", "MMES", "--problem", "Cigar"]
    assert main(["reproduce", "basic", "--full", "--out", str(begun), *quick]) == 0
    listed = begun / "basic" / "runs.csv"
    assert len(listed.read_text().splitlines()) == 1 + 2
    other = tmp_path / "other"
    given = ["reproduce", "basic", "--full", "--out", str(other), *quick]
    assert main([*given, "--take-over", str(listed)]) == 0
    assert "2 runs imported" in capsys.readouterr().out
    for name in ("runs.csv", "basic-1000.csv"):
        assert (other / "basic" / name).read_text() == (begun / "basic" / name).read_text()
    assert main([*given, "--take-over", str(listed), "--list"]) == 0
    assert "0 runs imported" in capsys.readouterr().out


def test_what_is_no_list_of_the_section_is_not_taken_over(begun, tmp_path, capsys):
    runs = SECTIONS["basic"].runs(Extent.FULL)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    given = ["reproduce", "basic", "--full", "--list", "--out", str(begun), "--take-over"]
    assert main([*given, str(tmp_path / "x.csv")]) == 2
    assert "has no column 'problem'" in capsys.readouterr().err
    (tmp_path / "y.csv").write_text(
        "problem,n,strategy,seed,reached,evaluations,generations,restarts,best,status,cpu_seconds,"
        "started,mmes,key\nCigar,1000,MMES,1,1,9,1,0,1e-9,TARGET,1,,0,k\n"
    )
    with pytest.raises(ValueError, match="line 2: no planned run has the key 'k'"):
        take_over_section(tmp_path / "y.csv", runs, Store(begun / "runs"))
