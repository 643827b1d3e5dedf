"""What is written about a user's own plan speaks of the user's strategies and problems only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mmes.lab.commands.laboratory import bench

PLAN = """
name = "Two strategies"
problems = ["cigar", "discus"]
dimensions = [5, 6]
seeds = 5
max_evaluations = 200
target = {target}
start = [-1, 1]
sigma0 = 0.5
chosen = "B"

[[strategy]]
name = "sep-cma"
label = "A"

[[strategy]]
name = "cma-es"
label = "B"
"""
WORDS = re.compile(r"\b(ours?|we|rows?|paper|published|mmes_\w+|MMES)\b")


def words_of(page: str) -> str:
    """Return what a reader of a page sees."""
    page = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"<[^>]*>", " ", page)


@pytest.mark.parametrize("target", [pytest.param('"none"', marks=pytest.mark.slow), "1e-2"])
def test_no_words_of_the_paper(
    tmp_path: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Failed before: 'average rank (ours, 4 rows)', columns `ours` and `paper`, 'mmes_better'."""
    (tmp_path / "plan.toml").write_text(PLAN.format(target=target))
    out = tmp_path / "out"
    assert bench([str(tmp_path / "plan.toml"), "--out", str(out), "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    texts = {"terminal": printed.replace(str(out), "")}
    texts["report"] = words_of((out / "report.html").read_text(encoding="utf-8"))
    for file in (out / "tables").iterdir():
        if file.suffix in (".csv", ".md", ".tex", ".txt"):
            texts[file.name] = file.read_text()
    assert len(texts) >= 6
    assert {name: WORDS.findall(text) for name, text in texts.items() if WORDS.search(text)} == {}
    assert "average rank (4 problems)" in texts["report"]
    assert "B is significantly better" in texts["report"]
