"""The documentation says what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import mmes
from mmes.base.reasons import StopReason
from mmes.strategies import STRATEGIES
from paths import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def test_the_page_of_options_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "option_tables.py"), "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_table_of_reasons_is_up_to_date_and_complete() -> None:
    command = [sys.executable, str(ROOT / "tools" / "pages.py"), "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "ends.md").read_text()
    assert [reason.name for reason in StopReason if f"| `{reason.name}` |" not in page] == []


@pytest.mark.parametrize("program", ["competitions.py", "reproduction.py", "solution_times.py"])
def test_the_tables_of_a_page_are_those_of_its_single_runs(program: str) -> None:
    command = [sys.executable, str(ROOT / "tools" / program), "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    words = re.sub(r"`[^`\n]*`", "", page.read_text())  # code is no link
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", words):
        if target.startswith("gallery/"):  # made from the examples when the site is built
            assert (ROOT / "examples" / f"{target}.py").exists(), target
        elif not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_reference_names_all_that_is_public() -> None:
    page = (ROOT / "docs" / "api.md").read_text().split()
    names = {*mmes.__all__, *mmes.replicas.__all__} - {"__version__", "replicas"}
    names |= {strategy.__name__ for strategy in STRATEGIES.values()}
    assert names - set(page) == set()


def test_the_example_of_the_readme_runs() -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert code is not None
    program = code.group(1).replace("np.zeros(1000)", "np.zeros(50)")
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "The target value was reached." in done.stdout


def test_every_block_of_code_names_its_language() -> None:
    """Failed before: commands and formulas had the colours of Python."""
    for page in PAGES:
        fences = re.findall(r"^ *```(.*)$", page.read_text(), re.MULTILINE)
        assert all(fences[::2]), page.name


def test_the_style_names_headings_that_exist() -> None:
    """Failed before: the title of a page had changed."""
    titles = [line for page in PAGES for line in re.findall(r"^#+ (.*)$", page.read_text(), re.M)]
    anchors = {re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") for title in titles}
    style = (ROOT / "docs" / "_static" / "site.css").read_text()
    named = re.findall(r"^ *#([\w-]+)", style, re.MULTILINE)
    assert named
    assert set(named) <= anchors
