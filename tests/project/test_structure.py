"""What the source keeps to: functions that can be called by heart, files read in one sitting."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import mmes

SOURCE = Path(mmes.__file__).parent
MOST_PARAMETERS = 7
# What users call, with keywords.
PUBLIC = {
    ("minimize.py", "minimize"),
    ("minimize.py", "resume"),
    ("run/loop.py", "__init__"),
    ("lab/clustering/estimator.py", "__init__"),
    ("integrations/scipy.py", "mmes_method"),
    ("integrations/torch.py", "__init__"),
    ("integrations/torch.py", "minimize_module"),
}
# Code for the device: Triton takes every pointer and every number as a parameter of its own.
DEVICE_CODE = {"kernels/gpu/triton_code.py"}


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Give the name and the number of parameters of each function, `self` not counted."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            every = node.args
            named = [a.arg for a in every.posonlyargs + every.args + every.kwonlyargs]
            named += [a.arg for a in (every.vararg, every.kwarg) if a is not None]
            yield node.name, len([name for name in named if name not in ("self", "cls")])


def long_calls() -> set[tuple[str, str]]:
    """Return file and name of the functions with too many parameters."""
    found = set()
    for path in sorted(SOURCE.rglob("*.py")):
        file = path.relative_to(SOURCE).as_posix()
        if file not in DEVICE_CODE:
            found |= {(file, name) for name, count in functions(path) if count > MOST_PARAMETERS}
    return found


def test_only_public_functions_have_many_parameters() -> None:
    assert long_calls() == PUBLIC


def test_parameters_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("class A:\n    def f(self, a, /, b, *c, d, **e): ...\nasync def g(): ...\n")
    assert dict(functions(path)) == {"f": 5, "g": 0}


def test_import_mmes_leaves_out_what_few_runs_need() -> None:
    """benchmarks/overhead.py measures the import time."""
    seldom = ("lab", "checkpoint", "replicas", "evaluate.workers", "evaluate.futures")
    code = (
        "import sys, mmes\n"
        f"print([m for m in {seldom} if f'mmes.{{m}}' in sys.modules])\n"
        "print(mmes.checkpoint.__name__, mmes.replicas.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\nmmes.checkpoint mmes.replicas\n", done.stderr
