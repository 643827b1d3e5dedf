"""``mmes coco``: data that COCO's own programs read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cocoex")

from mmes.cli import main
from mmes.lab.coco import Experiment

SMALL = ["--dim", "2,3", "--functions", "1-3", "--instances", "1,2", "--budget", "60"]


def run(out: Path, *flags: str, suite: str = "bbob") -> int:
    return main(["coco", suite, *SMALL, "--out", str(out), *flags])


def contents(folder: Path) -> dict[str, bytes]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_twice_the_same_seed_gives_the_same_files(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "one") == 0
    told = Path(capfd.readouterr().out.splitlines()[-1])
    assert told.is_dir()
    assert told.is_relative_to(tmp_path / "one")
    assert run(tmp_path / "two") == 0
    one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
    assert one == two
    assert any(name.endswith(".info") for name in one)
    assert any(name.endswith(".dat") for name in one)
    assert run(tmp_path / "three", "--seed", "2") == 0
    assert contents(tmp_path / "three") != one


def test_batches_share_the_problems(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def solved(*flags: str) -> set[str]:
        assert run(tmp_path, *flags) == 0
        return {line for line in capfd.readouterr().err.splitlines() if "evaluations" in line}

    whole = solved()
    parts = [solved("--batch", f"{part}/2") for part in (1, 2)]
    assert len(whole) == 12
    assert parts[0] | parts[1] == whole  # the same lines: a problem's seed is its own
    assert not parts[0] & parts[1]
    names = sorted(folder.name for folder in (tmp_path / "exdata").iterdir())
    assert [name.rpartition("-")[2] for name in names] == ["bbob", "batch1of2", "batch2of2"]


def test_the_budget_is_a_multiple_of_n(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    flags = [
        "--functions",
        "3",
        "--dim",
        "3",
        "--instances",
        "1",
        "--budget",
        "50",
        "--strategy",
        "sep-cma",
    ]
    assert main(["coco", "bbob", *flags, "--out", str(tmp_path)]) == 0
    assert "bbob_f003_i01_d03: 150 evaluations, best" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["nonsense"], "there is no suite 'nonsense'"),
        (["bbob", "--budget", "0"], "--budget: must be a number > 0"),
        (["bbob", "--batch", "9/8"], "--batch: must be I/K"),
        (["bbob", "--dim", "two"], "--dim: must be integers"),
        (["bbob", "--dim", "2,7"], "must be among 2, 3, 5, 10, 20, 40, not 7"),
        (["bbob", "--dim", "3000"], "dimensions of the suite bbob must be among"),
        (
            ["bbob", "--functions", "99"],
            "functions of the suite bbob must be among 1 to 24,",
        ),
        (["bbob", "--instances", "15-17"], "must be among 1 to 15, not 16, 17"),
        (["bbob", "--strategy", "mos"], "the strategy 'mos' needs bounds, but the problems of"),
        (["bbob-biobj", "--dim", "2"], "several objectives"),
        (["bbob", "--dim", "2", "--strategy", "nonsense"], "no strategy 'nonsense'"),
    ],
)
def test_mistakes(
    flags: list[str], words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["coco", *flags, "--out", str(tmp_path)]) == 2
    last = capfd.readouterr().err.splitlines()[-1]
    assert words in last
    assert last.startswith("mmes: ")


def test_an_experiment_refuses_what_cannot_be() -> None:
    for wrong in ({"budget": 0.0}, {"batch": (0, 2)}, {"suite": "x"}):
        arguments: dict[str, Any] = {"suite": "bbob"} | wrong
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Experiment(**arguments)


def test_constrained_and_mixed_integer_problems_are_recorded(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flags = ["--functions", "1,2", "--instances", "1", "--budget", "40", "--out", str(tmp_path)]
    assert main(["coco", "bbob-constrained", "--dim", "10,40", *flags]) == 0
    assert main(["coco", "bbob-mixint", "--dim", "20,80,160", *flags]) == 0
    said = capfd.readouterr().err
    for suite, dims in (("bbob-constrained", (10, 40)), ("bbob-mixint", (20, 80, 160))):
        folder = tmp_path / "exdata" / f"mmes-default-on-{suite}"
        assert len(list(folder.glob("*.info"))) == 2
        for n in dims:
            found = [file.read_text() for file in folder.rglob(f"*_f2_DIM{n}.dat")]
            # Lines of numbers follow the header.
            assert any(len(text.splitlines()) > 2 for text in found), (suite, n)
            assert f"{suite}_f002_i01_d{n:02}" in said


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_cocopp_reads_what_was_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cocopp")
    flags = ["--dim", "20,40", "--functions", "1,2", "--instances", "1-2"]
    assert main(["coco", "bbob-largescale", *flags, "--out", str(tmp_path)]) == 0
    folder = capfd.readouterr().out.splitlines()[-1]
    command = [sys.executable, "-m", "cocopp", "-o", "ppdata", folder]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    pages = list((tmp_path / "ppdata").rglob("*.html"))
    assert any("MMES" in page.read_text().upper() for page in pages)
