"""A wheel built from the source works in an empty environment, run from another folder."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from paths import ROOT

PROGRAM = ROOT / "tests" / "project" / "wheel_program.py"


@pytest.mark.slow
def test_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("mmes-*.whl")
    _check_long_description(wheel)
    if sys.version_info >= (3, 12):
        assert "-cp312-abi3-" in wheel.name
        audit = [sys.executable, "-m", "abi3audit", "--strict", str(wheel)]
        subprocess.run(audit, check=True, capture_output=True)
    empty = tmp_path / "empty"
    venv.create(empty, with_pip=True)
    python = empty / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, cwd=tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [str(python), str(PROGRAM)], check=False, capture_output=True, text=True, cwd=elsewhere
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("works")


def _check_long_description(wheel: Path) -> None:
    """Links of the long description work where there is no repository around it."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    assert "## When to use it" in text
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert all(target.startswith(("https://", "#")) for target in targets), targets
