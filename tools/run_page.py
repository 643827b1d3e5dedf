"""Do what a page of docs/five-minutes says: save its files, run its commands, compare the output.

    python tools/run_page.py docs/five-minutes/simulator.md

Works in an empty folder, with the Python that runs it, and needs nothing but the standard library:
`python packaging/release.py` runs the pages in fresh environments.

- A block of Python or TOML is saved under the name in its first line, ``# name.py``.
- The commands of a block of shell run in that folder, one after the other.
- A block of text after them is what they print. After the comment ``<!-- other numbers -->`` the
  numbers may differ, as they do with other versions of the packages.
- A block after the comment ``<!-- not run -->`` is skipped.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCKS = re.compile(
    r"(?:^<!-- (not run|other numbers) -->\n+)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")
FILES = ("python", "toml")
LIMIT_SECONDS = 300


def follow(page: Path, folder: Path) -> int:
    """Do in a folder what a page says; return how many commands were run."""
    printed: str | None = None
    count = 0
    for match in BLOCKS.finditer(page.read_text()):
        comment, kind, content = match.groups()
        if comment == "not run":
            printed = None
        elif kind in FILES:
            save(content, folder)
        elif kind == "sh":
            commands = content.replace("\\\n", " ").splitlines()
            printed = "".join(run(command, folder) for command in commands)
            count += len(commands)
        elif kind == "text" and printed is not None:
            compare(content, printed, numbers=comment != "other numbers")
    return count


def save(content: str, folder: Path) -> None:
    """Save a file under the name in its first line."""
    name = re.match(r"# (\w+\.\w+)", content)
    if name is None:
        raise SystemExit(f"the first line of a file must be '# name.py', not {content[:40]!r}")
    (folder / name.group(1)).write_text(content)


def run(command: str, folder: Path) -> str:
    """Run a command with this Python first in the path; return what it prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        command, shell=True, cwd=folder, env=os.environ | {"PATH": path}, text=True,
        capture_output=True, timeout=LIMIT_SECONDS, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def compare(expected: str, printed: str, numbers: bool) -> None:
    """Stop if a program printed something else than the page says."""
    texts = [expected.strip(), printed.strip()]
    if not numbers:
        texts = [NUMBER.sub("0", text) for text in texts]
    if texts[0] != texts[1]:
        raise SystemExit(f"the page says\n{expected}but this was printed:\n{printed}")


def main() -> None:
    """Follow the pages that are named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", type=Path)
    for page in parser.parse_args().pages:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{page.name}: {follow(page, Path(folder))} commands ran", flush=True)


if __name__ == "__main__":
    main()
