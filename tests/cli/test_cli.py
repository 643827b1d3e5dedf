"""The command line, as a user meets it."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil
import pytest

import mmes
from mmes import checkpoint
from mmes.cli import main
from mmes.cli.arguments import add_options
from mmes.cli.doctor import EXTRAS, print_estimate
from mmes.run.options import RUN_OPTIONS, VALIDATION
from mmes.testing import hostile
from paths import ROOT
from terminal import all_of

pytestmark = pytest.mark.usefixtures("folder")

START = ("--x0", "1,2,3", "--sigma0", "1", "--seed", "7")


# What works


def test_a_built_in_problem_is_solved_and_saved(command, folder):
    status, out, _ = command(
        "run", "sphere", "--dim", 20, "--target", "1e-6", "--seed", 3, "--out", "o"
    )
    assert status == 0
    assert "The target value was reached." in out
    found = json.loads((folder / "o" / "result.json").read_text())
    x = np.load(folder / "o" / "x.npy")
    assert found["fun"] == pytest.approx(hostile.sphere(x), rel=1e-14)  # summed in another order
    assert found["fun"] <= 1e-6
    assert (found["reason"], found["seed"], found["dimension"]) == ("TARGET_REACHED", 3, 20)
    with open(folder / "o" / "history.csv") as file:
        lines = list(csv.DictReader(file))
    assert int(lines[-1]["evaluations"]) == found["nfev"] - 2  # the target was confirmed
    assert float(lines[-1]["best"]) == found["fun"]


@pytest.mark.parametrize("target", ["model.py:loss", "model:loss"])
@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_a_function_of_the_user_equals_the_library(command, folder, target, workers):
    limits = ("--max-evaluations", "300", "--out", "o")
    assert command("run", target, *START, *limits, *workers)[0] == 0
    expected = mmes.minimize(hostile.sphere, [1.0, 2.0, 3.0], 1.0, seed=7, max_evaluations=300)
    assert np.array_equal(np.load("o/x.npy"), expected.x)


def test_all_kinds_of_starts(command, folder):
    np.save("start.npy", np.array([1.0, 2.0, 3.0]))
    (folder / "start.txt").write_text("1\n2\n3\n")
    np.save("box.npy", np.array([[-5.0, -5.0, -5.0], [5.0, 5.0, 5.0]]))
    (folder / "box.csv").write_text("-5,5\n-5,5\n-5,5\n")
    for start in (
        ("--x0", "start.npy", "--sigma0", "1"),
        ("--x0", "start.txt", "--sigma0", "1"),
        ("--dim", "3", "--x0", "2", "--sigma0", "1"),
        ("--dim", "3", "--bounds", "-5,5"),
        ("--bounds", "box.npy"),
        ("--bounds", "box.csv"),
        ("--x0", "-1,-2,-3", "--bounds", "-5,5", "--scale", "1,2,3", "--sigma0", "0.1"),
    ):
        status, out, err = command(
            "run", "model.py:loss", *start, "--max-evaluations", "1e2", "--quiet"
        )
        assert (status, out, err) == (0, "", ""), start
    assert json.loads((folder / "mmes-out-7" / "result.json").read_text())["nfev"] == 100


def test_a_suite_brings_its_box_and_its_treatment(command, folder):
    words = ("run", "lsgo2013/f13", "--seed", 1, "--max-evaluations", 72, "--sigma0", 1000)
    for treatment in ("clip", "reflect"):
        chosen = () if treatment == "clip" else ("--bounds-handling", treatment)
        status, _, err = command(*words, *chosen, "--out", treatment)
        assert status == 0
        assert err.startswith("strategy: adaptive (auto: n = 905 is above 100)")
        found = json.loads((folder / treatment / "result.json").read_text())
        assert found["options"]["bounds_handling"] == treatment
        x = np.abs(np.load(folder / treatment / "x.npy"))
        assert x.max() <= 100.0
        assert (x == 100.0).any() == (treatment == "clip")


def test_options_of_problem_search_and_evaluation(command):
    status, _, err = command(
        "run", "ellipsoid", "--dim", 10, "--problem-option", "alpha=3", "--restarts", 2,
        "--population-size", 12, "--no-mirrored", "--max-evaluations", 500, "--quiet",
    )  # fmt: skip
    assert (status, err) == (0, "")
    options = json.loads(Path("mmes-out/result.json").read_text())["options"]
    assert options["population_size"] == 12
    assert options["mirrored"] is False
    status, _, _ = command(
        "run", "model.py:rows", *START, "--vectorized", "--max-evaluations", 50, "--quiet"
    )
    assert status == 0


def test_the_target_decides_the_exit_code(command):
    limits = ("--max-evaluations", 30, "--quiet")
    assert command("run", "model.py:loss", *START, *limits)[0] == 0
    assert command("run", "model.py:loss", *START, *limits, "--target", 1e-9)[0] == 1


def test_a_run_is_resumed_to_the_bit(command, folder):
    common = ("--checkpoint", "run.mmes", "--out", "o")
    assert command("run", "model.py:loss", *START, *common, "--max-evaluations", 100)[0] == 0
    status, out, err = command(
        "resume", "run.mmes", "model.py:loss", "--max-evaluations", 300, "--out", "o",
        "--workers", 2,
    )  # fmt: skip
    assert status == 0, err
    assert "run.mmes: model.py:loss, " in err
    expected = mmes.minimize(hostile.sphere, [1.0, 2.0, 3.0], 1.0, seed=7, max_evaluations=300)
    assert np.array_equal(np.load("o/x.npy"), expected.x)
    assert "300 in" in out


def test_a_built_in_problem_is_resumed_by_its_name_in_the_file(command):
    run = ("run", "cigar", "--dim", 12, "--seed", 2, "--quiet")
    command(*run, "--max-evaluations", 400, "--out", "whole")
    command(*run, "--max-evaluations", 150, "--checkpoint", "run.mmes")
    status, _, err = command(
        "resume", "run.mmes", "--max-evaluations", 400, "--out", "parts", "--quiet"
    )
    assert status == 0, err
    assert np.array_equal(np.load("whole/x.npy"), np.load("parts/x.npy"))


def test_the_same_command_again_goes_on(command):
    words = ("run", "model.py:loss", *START, "--checkpoint", "run.mmes", "--resume", "auto",
             "--quiet", "--out", "o")  # fmt: skip
    assert command(*words, "--max-evaluations", 100)[0] == 0
    assert command(*words, "--max-evaluations", 200)[0] == 0
    assert json.loads(Path("o/result.json").read_text())["nfev"] == 200


def test_a_built_in_problem_resumes_from_its_own_random_start(command):
    """Failed before: the second command drew another seed, and refused its own checkpoint."""
    words = ("run", "sphere", "--dim", 10, "--checkpoint", "c.mmes", "--resume", "auto", "--quiet")
    assert command(*words, "--max-evaluations", 100, "--out", "a")[0] == 0
    status, _, err = command(*words, "--max-evaluations", 200, "--out", "b")
    assert status == 0, err
    first, second = (json.loads(Path(f"{o}/result.json").read_text()) for o in "ab")
    assert first["seed"] == second["seed"]
    assert second["nfev"] == 200


def test_help_for_everyone(capsys):
    assert main([]) == 2
    assert "First steps" in capsys.readouterr().out
    for words in (["--help"], ["run", "--help"], ["resume", "-h"], ["doctor", "-h"],
                  ["problems", "-h"], ["--version"]):  # fmt: skip
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        assert capsys.readouterr().out


def test_every_option_of_the_tables_is_a_flag(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help-all"])
    text = capsys.readouterr().out
    for option in RUN_OPTIONS + mmes.MMES.option_table():
        # A validation loss is code, which the command line does not take.
        shown = f"--{option.name.replace('_', '-')}" in text
        assert shown == (option not in VALIDATION), option.name
    assert callable(add_options)


def test_problems_are_listed_and_explained(command):
    status, out, _ = command("problems")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == mmes.problems.names()
    status, out, _ = command("problems", "rosenbrock")
    assert status == 0
    assert "mmes run rosenbrock" in out


def test_the_doctor_finds_all_well(command, monkeypatch):
    monkeypatch.setattr("mmes.base.memory.available_bytes", lambda: 2**50)
    status, out, _ = command("doctor", "--dim", "1e8")
    assert status == 0, out
    assert "FAILED" not in out
    assert "n = 100,000,000: " in out
    assert out.endswith("\nAll checks passed.\n")


def test_the_doctor_does_not_call_well_what_does_not_fit(command, monkeypatch):
    monkeypatch.setattr("mmes.base.memory.available_bytes", lambda: 2**32)
    monkeypatch.setattr("mmes.cli.doctor.check_health", lambda: True)  # half a minute; see above
    status, out, _ = command("doctor", "--dim", "1e15")
    assert status == 0
    assert out.endswith("1,000,000,000,000,000 variables do not fit into memory.\n")


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (50, r"n = 50: .* for active-cma with 15 candidates$"),
        (10**3, "for adaptive with 24 candidates and an archive of 64 directions$"),
        (10**15, r"n = 1,000,000,000,000,000: 2\.3\S+ TiB .*; this does not fit into memory$"),
    ],
)
def test_the_doctor_estimates_for_the_strategy_of_that_size(capsys, n, words):
    """Failed before: of MMES, and with a warning that 4.194e+06 TiB were usable."""
    assert print_estimate(n, 8 * 2**30) == (n < 10**15)
    assert re.search(words, capsys.readouterr().out)


def test_the_doctor_knows_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"all", "dev", "docs"}


def test_row27_the_doctor_says_why_there_is_no_native_kernel(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "mmes.kernels.native", None)
    monkeypatch.setattr("mmes.cli.doctor.workers_agree", lambda: True)
    with pytest.warns(mmes.MMESWarning, match="native kernel"):
        _, out, _ = command("doctor", "--dim", 10)
    assert "kernel: numpy reference, because the native one cannot be loaded" in out
    assert "the native kernel agrees with the reference          skipped" in out


def test_python_dash_m(folder):
    done = subprocess.run(
        [sys.executable, "-m", "mmes", "run", "model.py:loss", *START, "--max-evaluations", "60",
         "--workers", "2"],
        capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "best value" in done.stdout


# Mistakes: one sentence, no traceback


def test_an_error_in_the_objective_shows_its_line(command):
    words = ("run", "model.py:divides", "--x0", "1,2", "--sigma0", "1")
    _, _, err = command(*words)
    assert "model.py, line 12, in divides: return 1 / 0" in err
    _, _, err = command(*words, "--traceback")
    assert "Traceback" in err  # asked for


def test_an_error_raised_by_numpy_shows_the_line_of_the_objective(command, folder):
    """Failed before: it showed a line of numpy's."""
    (folder / "rows.py").write_text("import numpy as np\ndef f(x):\n    return np.sum(x, axis=1)\n")
    _, _, err = command("run", "rows.py:f", "--x0", "1,2", "--sigma0", "1")
    assert "rows.py, line 3, in f: return np.sum(x, axis=1)" in err


def test_a_folder_of_the_user_named_mmes_does_not_hide_the_line(command, folder):
    (folder / "mmes").mkdir()
    (folder / "mmes" / "in_a_folder.py").write_text("def f(x):\n    return 1 / 0\n")
    _, _, err = command("run", "mmes/in_a_folder.py:f", "--x0", "1,2", "--sigma0", "1")
    assert "in_a_folder.py, line 2, in f: return 1 / 0" in err


def test_the_report_of_a_run_names_what_was_minimised(command, folder):
    words = ("run", "sphere", "--dim", 5, "--max-evaluations", 50, "--out", "o", "--quiet")
    command(*words)
    assert command("report", "o")[0] == 0
    assert "<h1>Run: sphere</h1>" in (folder / "o" / "report.html").read_text()


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
def test_an_objective_that_never_gives_a_value_has_its_exit_code(command):
    status, out, _ = command("run", "model.py:not_a_number", *START)
    assert status == 3
    assert "No candidate had a finite value in ten generations" in out


@pytest.mark.parametrize("name", ["run.mmes", "of: 10:30.mmes"])
def test_an_existing_checkpoint_is_not_overwritten(command, name):
    words = ("run", "model.py:loss", *START, "--checkpoint", name, "--max-evaluations", 40)
    assert command(*words)[0] == 0
    status, _, err = command(*words)
    assert status == 4
    assert f"{name} already exists; resume it with 'mmes resume' or --resume auto" in err


def test_a_checkpoint_cannot_choose_which_code_runs(command, folder):
    (folder / "evil.py").write_text("open('was-here', 'w')\ndef f(x):\n    return 0.0\n")
    run = mmes.Run(hostile.sphere, [1.0, 2.0], 1.0, checkpoint="run.mmes", max_evaluations=20)
    run.notes = {"target": "evil.py:f", "problem_options": {}}
    run.run()
    status, _, err = command("resume", "run.mmes")
    assert status == 2
    assert "name the function again" in err
    assert not (folder / "was-here").exists()
    state, arrays = checkpoint.read("run.mmes")
    checkpoint.write("run.mmes", state | {"notes": {}}, arrays)
    assert "must be named" in command("resume", "run.mmes")[2]


def test_a_missing_extra_is_named(command, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    (folder / "plan.toml").write_text('problems = ["sphere"]\nmax_evaluations = 50\n')
    status, _, err = command("bench", "plan.toml")
    assert status == 2
    assert "pip install 'mmes[bench]'" in err


# Signals and the display


@pytest.mark.parametrize(
    ("number", "status", "workers"),
    [(signal.SIGINT, 130, ()), (signal.SIGTERM, 143, ("--workers", "2"))],
)
def test_row09_a_signal_saves_and_says_how_to_go_on(command, folder, number, status, workers):
    process = subprocess.Popen(
        [sys.executable, "-m", "mmes", "run", "model.py:slow", *START, "--checkpoint", "run.mmes",
         "--checkpoint-generations", "1", "--out", "o", *workers],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
    )  # fmt: skip
    patience = time.monotonic() + 60
    while not (folder / "run.mmes").exists() and time.monotonic() < patience:
        time.sleep(0.05)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == status, err
    assert "mmes: to continue: mmes resume run.mmes model.py:slow" in err
    assert "Traceback" not in err
    assert "The run was interrupted." in out
    assert not psutil.wait_procs(children, timeout=10)[1]
    resumed = command("resume", "run.mmes", "model.py:loss", "--max-evaluations", 400, "--out", "o")
    assert resumed[0] == 0, resumed
    expected = mmes.minimize(hostile.sphere, [1.0, 2.0, 3.0], 1.0, seed=7, max_evaluations=400)
    assert np.array_equal(np.load("o/x.npy"), expected.x)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_on_a_terminal_the_line_is_live(folder):
    pytest.importorskip("rich")
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mmes", "run", "model.py:slow", *START, "--max-evaluations", "60"],
        stdout=subprocess.DEVNULL, stderr=theirs, cwd=folder, env=os.environ | {"TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    seen = all_of(ours)
    assert process.wait(timeout=60) == 0
    assert b"evaluations" in seen
    assert b"\x1b[2K" in seen  # the line is drawn over


@pytest.mark.parametrize(
    "change",
    [
        {"notes": {"target": "sphere", "problem_options": {"dimension": 10**9}}},
        {"notes": {"target": 3, "problem_options": {}}},
        {"notes": {"target": "sphere", "problem_options": [1]}},
        {"notes": {"target": "sphere", "problem_options": {"dimension": "many"}}},
        {"notes": "none"},
        {"limits": 3},
        {"limits": {}},
        {"evaluations": "many", "spent": {"evaluations": "many"}},
        {"search": []},
        {"options": {"seed": "\x1b[2J"}},
        {"strategy": ["mmes"]},
        {"strategy": "\x1b[2J"},
    ],
    ids=str,
)
def test_a_checkpoint_with_wrong_entries_is_one_line(command, change):
    """No traceback, nothing large built, no character that commands the terminal."""
    command("run", "sphere", "--dim", 10, "--max-evaluations", 200, "--checkpoint",
            "run.mmes", "--quiet")  # fmt: skip
    state, arrays = mmes.checkpoint.read("run.mmes")
    arrays = {name: np.array(array) for name, array in arrays.items()}
    mmes.checkpoint.write("run.mmes", state | change, arrays)
    mmes.checkpoint.previous_path("run.mmes").unlink()
    status, _, err = command("resume", "run.mmes", "--max-evaluations", 300)
    assert status in (2, 4), err
    assert err.startswith("mmes: ")
    assert err.count("\n") == 1
    assert "\x1b" not in err


def test_the_number_of_variables_is_called_the_same_everywhere(capsys):
    """Failed before: --dim, --dimension and --dimensions."""
    names = ["run", "doctor", "reproduce", *(["coco"] if find_spec("cocoex") else [])]
    for name in names:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        text = capsys.readouterr().out
        assert re.search(r"^ +--dim ", text, re.MULTILINE), name
        assert "--dimension" not in text


def test_help_shows_the_common_flags_and_help_all_the_rest(capsys):
    """Failed before: 47 options for the default strategy."""
    shown = {}
    for flag in ("--help", "--help-all"):
        with pytest.raises(SystemExit):
            main(["run", flag])
        shown[flag] = set(re.findall(r"^ +(--[a-z0-9-]+)", capsys.readouterr().out, re.MULTILINE))
    assert shown["--help"] < shown["--help-all"]
    hidden = shown["--help-all"] - shown["--help"]
    assert {"--c-a", "--mixing", "--archive-size", "--chunk-size", "--kernel"} <= hidden
    common = {"--target", "--max-evaluations", "--seed", "--workers", "--population-size"}
    assert common <= shown["--help"]
    assert len(shown["--help"]) <= 42
    assert main(["run", "sphere", "--dim", "200", "--mixing", "2", "--max-evaluations", "40"]) == 0


def test_help_of_resume_promises_no_default_of_a_new_run(capsys):
    """Failed before: it showed the defaults of a new run, and had no --threads or --device."""
    with pytest.raises(SystemExit):
        main(["resume", "--help-all"])
    text = " ".join(capsys.readouterr().out.split())
    assert "(default: unchanged)" in text
    assert "unlimited)" not in text
    assert "--resume" not in text
    for flag in ("--threads", "--kernel", "--device"):
        assert flag in text


def test_a_resumed_run_may_change_threads_and_kernel(command, folder):
    given = ("run", "model.py:loss", "--x0", "1,2,3", "--sigma0", 1, "--quiet", "--seed", 1)
    assert command(*given, "--max-evaluations", 40, "--checkpoint", "run.mmes")[0] == 0
    words = ("--kernel", "reference", "--threads", 1, "--max-evaluations", 80, "--out", "o")
    status, _, err = command("resume", "run.mmes", "model.py:loss", *words)
    assert status == 0, err
    assert json.loads((folder / "o" / "result.json").read_text())["kernel"] == "reference"
