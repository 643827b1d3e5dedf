"""Tables that programs write into pages, between two comments that name them."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

WORDS = ("why",)
"""The columns of words, beside the first; they begin at the left."""


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; all columns are numbers but the first and those of WORDS."""
    sides = ["---" if name in WORDS else "---:" for name in head[1:]]
    lines = [head, ["---", *sides], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def wrapped(text: str) -> str:
    """Return the text with its sentences on lines of at most 100 characters; tables stay."""
    lines = (
        line if line.startswith("|") else textwrap.fill(line, 100, break_on_hyphens=False)
        for line in text.split("\n")
    )
    return "\n".join(lines)


def renewed(page: str, texts: Mapping[str, str]) -> str:
    """Return the page with every text between its marks renewed; it need not have all of them."""
    for name, text in texts.items():
        mark, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if mark in page:
            before, _, rest = page.partition(mark)
            page = f"{before}{mark}\n\n{wrapped(text)}\n\n{end}{rest.partition(end)[2]}"
    return page


def write_or_check(path: Path, texts: Callable[[], Mapping[str, str]]) -> int:
    """Renew a page, or with --check only say by the exit status whether it is up to date."""
    page = path.read_text(encoding="utf-8")
    new = renewed(page, texts())
    if "--check" in sys.argv:
        if page != new:
            print(f"{path.name} does not match the single runs: run {sys.argv[0]}", file=sys.stderr)
        return int(page != new)
    path.write_text(new, encoding="utf-8")
    return 0
