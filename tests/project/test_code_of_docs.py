"""Every Python block of the README and of the documentation runs.

The blocks of a page run one after the other, in one namespace and an empty folder. What a page
takes for granted stands in a comment ``<!-- run first ... -->`` of the page itself, which readers
do not see. Budgets are cut, so that the pages may speak of real ones.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mmes
from paths import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
PIECES = re.compile(r"<!-- run first\n(.*?)-->|^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
AT_MOST = 2000  # evaluations
# Packages that only the lane with all extras has.
HEAVY = ("torch", "jax", "optuna", "cocoex", "ray", "nevergrad")


def pieces(page: Path) -> list[str]:
    words = page.read_text()
    found = []
    for match in PIECES.finditer(words):
        line = words.count("\n", 0, match.start()) + 1
        found.append("\n" * line + (match.group(1) or match.group(2)))
    return found


def with_code() -> list[Path]:
    # The pages of docs/five-minutes are followed to the letter: test_five_minutes.py.
    elsewhere = ("generated", "five-minutes")
    return [
        page
        for page in PAGES
        if "```python" in page.read_text() and page.parent.name not in elsewhere
    ]


@pytest.fixture
def cut_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    real = {name: getattr(mmes, name) for name in ("minimize", "resume")}

    def cut(name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            given = options.get("max_evaluations") or AT_MOST
            return real[name](*arguments, **options | {"max_evaluations": min(given, AT_MOST)})

        return call

    for name in real:
        monkeypatch.setattr(mmes, name, cut(name))


@pytest.mark.usefixtures("cut_budgets")
@pytest.mark.parametrize("page", with_code(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    space: dict[str, Any] = {"__name__": "__main__"}
    for code in pieces(page):
        needed = set(re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)) & set(HEAVY)
        needed |= set(re.findall(r"mmes\.integrations\.(torch|jax|optuna)", code))
        if any(importlib.util.find_spec(name) is None for name in needed):
            pytest.skip(f"needs {', '.join(sorted(needed))}")
        exec(compile(code, str(page), "exec"), space)


@pytest.mark.slow
def test_the_page_on_what_is_your_own_works_from_the_command_line(tmp_path: Path) -> None:
    words = (ROOT / "docs" / "own.md").read_text()
    strategy, *_, problem = re.findall(r"```python\n(.*?)```", words, re.DOTALL)
    (tmp_path / "onefifth.py").write_text(strategy)
    (tmp_path / "sensors.py").write_text(problem)
    plan = re.search(r"```toml\n(.*?)```", words, re.DOTALL)
    assert plan is not None
    short = plan.group(1).replace("seeds = 5", "seeds = 2").replace("= 5000", "= 500")
    (tmp_path / "plan.toml").write_text(short)
    commands = [
        shlex.split(line, comments=True) for line in re.findall(r"^    (mmes .*)$", words, re.M)
    ]
    assert [command[1] for command in commands] == ["run", "resume", "bench", "run"]
    for _, *arguments in commands:
        done = subprocess.run(
            [sys.executable, "-m", "mmes", *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
