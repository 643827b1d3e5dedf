"""Adapters are imported by those who ask for them, and by nobody else."""

from __future__ import annotations

import subprocess
import sys

import pytest

FOREIGN = [
    "scipy",
    "torch",
    "jax",
    "optuna",
    "tqdm",
    "rich",
    "cocoex",
    "ray",
    "dask",
    "matplotlib",
    "sklearn",
]


def test_import_mmes_loads_no_extra() -> None:
    command = [sys.executable, "-X", "importtime", "-c", "import mmes"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    loaded = {line.split("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "numpy" in loaded
    assert not loaded & set(FOREIGN)
    assert "mmes.integrations" not in done.stderr


@pytest.mark.parametrize(
    ("adapter", "package", "extra"),
    [
        ("mmes.integrations.scipy", "scipy", "scipy"),
        ("mmes.integrations.torch", "torch", "torch"),
        ("mmes.integrations.jax", "jax", "jax"),
        ("mmes.integrations.optuna", "optuna", "optuna"),
        ("mmes.lab.coco", "cocoex", "coco"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(adapter: str, package: str, extra: str) -> None:
    program = (
        "import sys, importlib\n"
        f"sys.modules[{package!r}] = None\n"
        f"importlib.import_module({adapter!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert (
        f"{package} is needed for this; install it with: pip install 'mmes[{extra}]'"
        in (done.stderr.splitlines()[-1])
    )
