"""Build everything that a release has, and check what can be checked on one machine.

    python packaging/release.py                    # or: make release
    python packaging/release.py --pythons 3.11     # fewer versions of Python
    python packaging/release.py --torch            # also the page for PyTorch (a large download)

Writes to ``dist``: the source archive and, built from it, a wheel for Python 3.11 and one for 3.12
and later (stable ABI). Then: abi3audit, twine check, and for each Python an empty environment in
which the wheel works with numpy alone and the pages of docs/five-minutes can be followed.

Nothing is uploaded. `.github/workflows/release.yml` does that, when a tag is pushed, with wheels
for all platforms.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST, WORK = ROOT / "dist", ROOT / "build" / "release"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
PYTHONS = ("3.11", "3.12", "3.13")
WHEELS = {"3.11": "cp311-cp311", "3.12": "cp312-abi3"}
PINS = ROOT / "packaging" / "pins.txt"  # versions that are known to be no larger than needed
TOOLS = ("abi3audit", "build", "twine")
# The pages, by the extras that they need. The first works with numpy alone.
PAGES = {"": ("simulator",), "scipy,bench,report,mpi": ("scipy", "researcher", "cluster")}
NOT_CHECKED = (
    "other platforms (macOS, Linux on ARM): cibuildwheel in the workflow builds and tests there",
    "the tag manylinux: wheels built here are for this system; those of the workflow are published",
    "the upload itself",
)


def main() -> int:
    """Build and check; return 0 if nothing failed."""
    arguments = parsed()
    notes = [*NOT_CHECKED, *untidy()]
    pythons = {}
    for version in arguments.pythons:
        if found := interpreter(version):
            pythons[version] = found
        else:
            notes.append(f"Python {version}: there is none on this machine")
    missing = set(WHEELS) - set(pythons)
    if missing:
        sys.exit(f"the wheels need Python {' and '.join(sorted(missing))}")
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.rmtree(DIST, ignore_errors=True)
    build(pythons)
    for version, python in pythons.items():
        try_out(version, python)
    if arguments.torch:
        follow(WORK / pythons_newest(pythons), "torch", ("pytorch",))
    else:
        notes.append("docs/five-minutes/pytorch.md: give --torch")
    print(f"\nmmes {VERSION} is ready in {DIST.relative_to(ROOT)}:")
    for file in sorted(DIST.iterdir()):
        print(f"  {file.name} ({file.stat().st_size / 1e6:.1f} MB)")
    print("Not checked:", *(f"- {note}" for note in notes), sep="\n  ")
    return 0


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pythons", nargs="+", default=PYTHONS, metavar="VERSION")
    parser.add_argument("--torch", action="store_true", help="install PyTorch for its page")
    return parser.parse_args()


def build(pythons: dict[str, Path]) -> None:
    """Make the source archive, and from it the wheels; check all of them."""
    tools = environment("tools", Path(sys.executable))
    step("tools", [tools, "-m", "pip", "install", "-q", *TOOLS])
    step("source archive", [tools, "-m", "build", "--sdist", "--outdir", DIST, ROOT])
    source = DIST / f"mmes-{VERSION}.tar.gz"
    for version, tag in WHEELS.items():
        python = environment(f"build-{version}", pythons[version])
        options = ["--no-deps", "-q", "--wheel-dir", DIST]
        step(f"wheel {tag}", [python, "-m", "pip", "wheel", *options, source])
        wheel(version)
    step("abi3audit", [tools, "-m", "abi3audit", "--strict", wheel("3.12")])
    step("twine check", [tools, "-m", "twine", "check", "--strict", *DIST.iterdir()])


def try_out(version: str, python: Path) -> None:
    """Install the wheel in an empty environment, and use it there."""
    empty = environment(version, python)
    step(f"{version}: install", [empty, "-m", "pip", "install", "-q", wheel(version)])
    program = ROOT / "tests" / "project" / "wheel_program.py"
    step(f"{version}: with numpy alone", [empty, program])
    for extras, pages in PAGES.items():
        follow(WORK / version, extras, pages)


def follow(folder: Path, extras: str, pages: tuple[str, ...]) -> None:
    """Follow pages of docs/five-minutes in an environment, to which extras are added."""
    python = folder / "bin" / "python"
    if extras:
        wanted = f"{wheel(folder.name)}[{extras}]"
        install = [python, "-m", "pip", "install", "-q", "-c", PINS, wanted]
        step(f"{folder.name}: [{extras}]", install)
    for page in pages:
        path = ROOT / "docs" / "five-minutes" / f"{page}.md"
        step(f"{folder.name}: {path.name}", [python, ROOT / "tools" / "run_page.py", path])


def wheel(version: str) -> Path:
    """Return the wheel for a Python."""
    tag = WHEELS.get(version, WHEELS["3.12"])
    (found,) = DIST.glob(f"mmes-{VERSION}-{tag}-*.whl")
    return found


def environment(name: str, python: Path) -> Path:
    """Make an empty environment; return its Python."""
    step(f"environment {name}", [python, "-m", "venv", WORK / name])
    return WORK / name / "bin" / "python"


def interpreter(version: str) -> Path | None:
    """Return a Python of this version: from the path, or one of pyenv's."""
    installed = Path.home() / ".pyenv" / "versions"
    candidates = [shutil.which(f"python{version}"), *installed.glob(f"{version}.*/bin/python")]
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    for candidate in filter(None, candidates):
        done = subprocess.run(
            [candidate, "-c", ask], check=False, capture_output=True, text=True, env=clean()
        )
        if done.stdout.strip() == version:
            return Path(candidate)
    return None


def pythons_newest(pythons: dict[str, Path]) -> str:
    """Return the newest version, by number."""
    return max(pythons, key=lambda version: [int(part) for part in version.split(".")])


def untidy() -> list[str]:
    """Return what is unusual about the working tree."""
    found = []
    status = ["git", "status", "--porcelain"]
    done = subprocess.run(status, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode or done.stdout:
        found.append("what was built is not a commit: the working tree has changes")
    if not re.search(rf"^## {re.escape(VERSION)} - \d", (ROOT / "CHANGELOG.md").read_text(), re.M):
        found.append(f"CHANGELOG.md has no date for {VERSION}")
    return found


def clean() -> dict[str, str]:
    """Return the environment without anything that would let this repository in."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def step(name: str, command: list[object]) -> None:
    """Run a command outside the repository; stop if it fails."""
    began = time.monotonic()
    print(f"{name} ...", end=" ", flush=True)
    WORK.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [str(part) for part in command], check=False, cwd=WORK, env=clean(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"failed with exit code {done.returncode}\n{done.stdout}")
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
