"""Write docs/options.md from the option tables: python tools/option_tables.py [--check]."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from mmes.base.options import Option
from mmes.lab.competitors import COMPETITORS
from mmes.lab.competitors.shell import SHARED_OPTIONS
from mmes.minimize import RUN_OPTIONS
from mmes.strategies import STRATEGIES
from mmes.strategies.shell.options import COMMON_OPTIONS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "options.md"
INTRODUCTION = """# Options

Written by `python tools/option_tables.py` from the tables in the code, which also validate what is
given; a test keeps this page up to date. All are keywords of `mmes.minimize`; those of a strategy
are also keywords of its class.
"""
TITLES = ("option", "symbol", "default", "allowed", "what it does")


def line(cells: Iterable[str]) -> str:
    """Return one line of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(options: Iterable[Option]) -> str:
    """Return a Markdown table of options."""
    lines = [line(TITLES), line(["---"] * len(TITLES))]
    for option in options:
        default = option.default_text or repr(option.shown_default)
        lines.append(
            line((f"`{option.name}`", option.symbol, default, option.allowed, option.text))
        )
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the whole page."""
    parts = [INTRODUCTION, "## The run\n", table(RUN_OPTIONS)]
    parts += ["## Every strategy\n", table(COMMON_OPTIONS)]
    for name, strategy in STRATEGIES.items():
        parts += [f"## Strategy `{name}`\n", table(strategy.search_type.options)]
    parts += ["## Every competitor\n", table(SHARED_OPTIONS)]
    for name, competitor in COMPETITORS.items():
        parts += [f"## Competitor `{name}`\n", table(competitor.own_options)]
    return "\n".join(parts)


if __name__ == "__main__":
    if "--check" not in sys.argv:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        sys.exit(f"{PAGE.name} is out of date: run python tools/option_tables.py")
