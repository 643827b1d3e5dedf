"""Print the requirements of extras, one per line: python tools/dev_requirements.py [EXTRA ...].

Without names: of `dev`. Extras of this package within them are unfolded.
"""

from __future__ import annotations

import re
import sys
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
extras = project["optional-dependencies"]
wanted = [line for name in sys.argv[1:] or ["dev"] for line in unfold(name, extras)]
for line in dict.fromkeys([*project["dependencies"], *wanted]):
    print(line)
