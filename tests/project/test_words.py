"""Plain words: lines that a diff can show, and none of the expressions that were replaced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paths import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCES = sorted((ROOT / "src" / "mmes").rglob("*.py"))
LONGEST = 100
# Neither pages nor messages have these; a manual says it otherwise.
ODD = {
    "is no value": "is not a number",
    "are expected, but": "must return 12 values, but returned 11",
    "of one's own": "custom, or your own ...",
    "of the user's own": "the user's ...",
    "a function of yours": "your own function",
    "but for rounding": "up to rounding",
    "goes on": "continues",
    "go on from": "resume from",
    "begun with": "started with",
    "whoever": "name who it is",
    "anew": "again",
    "said once": "issued once",
    "as it should be": "say what is checked",
}
# Names of 0.1.0, each with another one now: one name, one meaning.
OLD_NAMES = {
    "Again", "Beginning", "Course", "Ends", "OneAtATime", "OwnEvaluator", "Standstill",
    "_despite_noise", "_to_the_end", "go_on_with", "hosted",
}  # fmt: skip


def prose(page: str) -> Iterator[tuple[int, str]]:
    """Give the lines of a page with their numbers, without code, tables and lines of one link."""
    page = re.sub(r"<!--.*?-->", lambda found: "\n" * found[0].count("\n"), page, flags=re.DOTALL)
    fenced = False
    for number, line in enumerate(page.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        apart = line.startswith(("|", "    ")) or re.fullmatch(r"\W*\[[^]]*\]\(\S*\)\W*", line)
        if not (fence or fenced or apart):
            yield number, line


def messages(source: str) -> Iterator[str]:
    """Give the texts of a module that are not its documentation."""
    tree = ast.parse(source)
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and id(node) not in documentation:
            yield text


def odd(text: str) -> list[str]:
    return [words for words in ODD if re.search(rf"\b{words}\b", text, re.IGNORECASE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lines_of_prose_are_short(page: Path) -> None:
    long = [number for number, line in prose(page.read_text()) if len(line) > LONGEST]
    assert long == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_have_no_odd_expressions(page: Path) -> None:
    assert [(number, odd(line)) for number, line in prose(page.read_text()) if odd(line)] == []


def test_messages_have_no_odd_expressions() -> None:
    found = [
        (source.name, text)
        for source in SOURCES
        for text in messages(source.read_text())
        if odd(text)
    ]
    assert found == []


def test_old_names_are_gone() -> None:
    defined = re.compile(rf"^ *(?:def|class) ({'|'.join(sorted(OLD_NAMES))})\b", re.MULTILINE)
    found = [(source.name, defined.findall(source.read_text())) for source in SOURCES]
    assert [(name, names) for name, names in found if names] == []


def test_what_is_prose() -> None:
    page = "a\n```\ncode\n```\n| table |\n    code\n[link](there)\n<!-- run first\nb\n-->\nc\n"
    assert list(prose(page)) == [(1, "a"), (8, ""), (9, ""), (10, ""), (11, "c")]
    assert odd("It goes on.") == ["goes on"]
    assert list(messages('"""It goes on."""\nprint("and " f"on {x}")\n')) == ["and on "]
