"""A wheel built from the source works in an empty environment, run from another folder."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = """
import numpy as np, mmes, sys
from mmes import problems
from mmes.kernels import native_problem
assert native_problem() is None, native_problem()
assert "site-packages" in mmes.__file__, mmes.__file__
r = mmes.minimize(problems.get("cigar", dimension=100), np.ones(100), 1.0, vectorized=True,
                  target=1e-8, seed=1)
assert r.success and r.kernel.startswith("native"), r
assert problems.get("lsgo2013/f7")(np.zeros(1000)) > 0
assert not {"scipy", "matplotlib", "polars"} & set(sys.modules)
print("works", r.nfev)
"""


@pytest.mark.slow
def test_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("mmes-*.whl")
    empty = tmp_path / "empty"
    venv.create(empty, with_pip=True)
    python = empty / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, cwd=tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [str(python), "-c", PROGRAM], check=False, capture_output=True, text=True, cwd=elsewhere
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("works")
