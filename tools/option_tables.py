"""Write docs/options.md from the option tables: python tools/option_tables.py [--check]."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from mmes.minimize import RUN_OPTIONS
from mmes.options import Option
from mmes.strategies import STRATEGIES
from mmes.strategies.ask_tell import COMMON_OPTIONS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "options.md"
INTRODUCTION = """# Options

Written by `python tools/option_tables.py` from the tables in the code, which also validate what is given; a test keeps
this page up to date. All are keywords of `mmes.minimize`; those of a strategy are also keywords of its class.
"""


def table(options: Iterable[Option]) -> str:
    """Return a Markdown table of options."""
    lines = [
        "| option | symbol | default | allowed | what it does |",
        "| --- | --- | --- | --- | --- |",
    ]
    for option in options:
        default = option.default_text or repr(option.default)
        cells = (f"`{option.name}`", option.symbol, default, option.allowed, option.text)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the whole page."""
    parts = [
        INTRODUCTION,
        "## The run",
        table(RUN_OPTIONS),
        "## Every strategy",
        table(COMMON_OPTIONS),
    ]
    for name, strategy in STRATEGIES.items():
        parts += [f"## Strategy `{name}`", table(strategy.search_type.options)]
    return "\n".join(parts)


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(
            PAGE.read_text() != page() and f"{PAGE.name} is out of date: run tools/option_tables.py"
        )
    PAGE.write_text(page())
