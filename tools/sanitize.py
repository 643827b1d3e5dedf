"""Build the kernels with the address and undefined-behaviour sanitizers and run their tests.

    python tools/sanitize.py

Everything happens in a temporary folder; the installed package stays as it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = (
    "tests/kernels",
    "tests/problems",
    "tests/base/test_randomness.py",
    "tests/strategies/mmes",
)


def runtime_library(name: str) -> str:
    """Return the path of a sanitizer's run-time library, which must be loaded before Python."""
    compiler = os.environ.get("CXX", "g++")
    found = subprocess.run(
        [compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True
    )
    return found.stdout.strip()


def main() -> int:
    """Build, run, and return pytest's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation"),
                *("--no-deps", "-C", "cmake.define.MMES_SANITIZE=ON", "-C", "install.strip=false"),
                *("--target", folder, str(ROOT)),
            ],
            check=True,
        )
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([folder, sysconfig.get_path("purelib")]),
            "LD_PRELOAD": f"{runtime_library('libasan.so')} {runtime_library('libubsan.so')}",
            # Python itself leaks at exit by design, and threads of BLAS are not ours to judge.
            # pytest would keep what is written to stderr, and die with it.
            "ASAN_OPTIONS": f"detect_leaks=0:log_path={folder}/report",
            "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:log_path={folder}/report",
        }
        # -S: without the hook of an editable install, which would win over the path.
        python = [sys.executable, "-S"]
        tests = [str(ROOT / test) for test in TESTS]
        check = (
            "from mmes.kernels import _native as n; "
            f"assert n.__file__.startswith({folder!r}), n.__file__"
        )
        subprocess.run([*python, "-c", check], check=True, env=environment, cwd=folder)
        command = [*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        status = subprocess.run(command, env=environment, cwd=folder, check=False).returncode
        for report in Path(folder).glob("report.*"):
            print(report.read_text(errors="replace"))
        return status


if __name__ == "__main__":
    sys.exit(main())
