"""Print the requirements of the `dev` extra, one a line, with extras of this package unfolded."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


def unfold(extra: str, extras: dict[str, list[str]]) -> list[str]:
    """Return the requirements of one extra; `mmes[a,b]` stands for those of the extras a and b."""
    found: list[str] = []
    for requirement in extras[extra]:
        own = re.fullmatch(r"mmes\[(.*)\]", requirement)
        inner = own.group(1).split(",") if own else []
        found += [r for name in inner for r in unfold(name, extras)] if own else [requirement]
    return found


project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
for line in [*project["dependencies"], *unfold("dev", project["optional-dependencies"])]:
    print(line)
