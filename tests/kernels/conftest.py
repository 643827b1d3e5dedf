"""The kernels that keep their vectors on a device, as far as this machine can run them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest


@pytest.fixture(params=["torch", "triton"])
def make_kernel(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Any]]:
    """Yield what makes a kernel for a precision: on the GPU where there is one, else the CPU."""
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mmes[torch]'")
    from mmes.kernels import Precision, choose_kernel

    if request.param == "triton":
        pytest.importorskip("triton", reason="triton is not installed")
        if not torch.cuda.is_available():
            os.environ["TRITON_INTERPRET"] = "1"  # read where the kernels are defined
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with np.errstate(all="ignore"):  # a GPU has no warnings, Triton's interpreter has numpy's
        yield lambda *names: choose_kernel(request.param, None, device, Precision(*names))


@pytest.fixture
def kernel(make_kernel: Callable[[str], Any]) -> Any:
    """Return a kernel with candidates in double precision."""
    return make_kernel("float64")


@pytest.fixture
def single(make_kernel: Callable[[str], Any]) -> Any:
    """Return a kernel with candidates in single precision."""
    return make_kernel("float32")
