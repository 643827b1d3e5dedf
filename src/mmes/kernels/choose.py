"""The choice of the kernel: native if it can be loaded, otherwise the reference, with a warning.

With a device, the vectors are on it: the Triton kernel on a GPU, torch operations elsewhere.
`KERNELS` and `DEVICE_KERNELS` name them; to add one, write its file and its line here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from mmes.errors import KernelWarning, warn_user

if TYPE_CHECKING:
    from mmes.kernels.protocol import Kernel


def _late(module: str, name: str) -> Callable[..., Kernel]:
    """Return what makes a kernel; its module is imported at the first call."""
    return lambda *given: vars(import_module(f"mmes.kernels.{module}"))[name](*given)


KERNELS: dict[str, Callable[[int | None], Kernel]] = {
    "native": _late("native", "NativeKernel"),
    "reference": lambda threads: _late("reference", "ReferenceKernel")(),
}
"""What makes the kernel of each name, for a number of threads (None: as many as pay)."""


class Precision(NamedTuple):
    """Floating-point types on a device by name; None means the default."""

    population_dtype: str | None = None
    mean_dtype: str | None = None


DEVICE_KERNELS: dict[str, Callable[[str, Precision], Kernel]] = {
    "torch": lambda device, kinds: _late("gpu.torch", "TorchKernel")(device, *kinds),
    "triton": lambda device, kinds: _late("gpu.triton", "TritonKernel")(device, *kinds),
}
"""What makes the kernel of each name, for a device and precisions there."""


_DEVICES = (
    "cpu",
    "cuda",
    "hip",
    "hpu",
    "maia",
    "mps",
    "mtia",
    "npu",
    "privateuseone",
    "xla",
    "xpu",
)


def choose_kernel(
    name: str = "auto",
    threads: int | None = None,
    device: str | None = None,
    precision: Precision | None = None,
) -> Kernel:
    """Return the kernel of that name; ``"auto"`` chooses the fastest available one.

    `threads` are for kernels on the host, `precision` for those on a device. The device says where
    the vectors are; None means numpy arrays.

    Raises
    ------
    ImportError
        If the kernel, or the torch that a device needs, cannot be loaded.
    ValueError
        If the kernel is not one of the device.
    """
    precision = precision or Precision()
    if device is not None or name in DEVICE_KERNELS:
        return _device_kernel(name, device or "cpu", precision)
    for option, wanted in precision._asdict().items():
        if wanted is not None:
            raise ValueError(f"{option}={wanted!r} needs a device; numpy vectors are float64")
    problem = native_problem() if name in ("auto", "native") else None
    if problem is not None and name == "native":
        raise ImportError(f"kernel='native' cannot be loaded: {problem}")
    if name == "auto":
        if problem is not None:
            warn_user(
                f"the native kernel cannot be loaded ({problem}); "
                "the numpy reference is used, which is many times slower",
                KernelWarning,
            )
        name = "native" if problem is None else "reference"
    return KERNELS[name](_from_environment() if threads is None else threads)


def _from_environment() -> int | None:
    """Return the number of threads in MMES_THREADS, or None."""
    word = os.environ.get("MMES_THREADS", "")
    if not word:
        return None
    if not word.isdecimal() or int(word) < 1:
        raise ValueError(
            f"the environment variable MMES_THREADS must be an integer >= 1, not {word!r}"
        )
    return int(word)


def check_device_name(name: str) -> None:
    """Raise ValueError if the name is not a torch device; torch is not loaded for this."""
    kind, _, number = name.partition(":")
    if kind not in _DEVICES or (number and not (number.isdecimal() and len(number) < 5)):
        raise ValueError(f"device must be one of torch's, such as 'cuda:1', not {name[:40]!r}")


def _device_kernel(name: str, device: str, precision: Precision) -> Kernel:
    if name in KERNELS:
        raise ValueError(
            f"kernel={name!r} works in the host's memory and cannot be combined with "
            f"device={device!r}"
        )
    try:
        import torch  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            f"device={device!r} needs torch; install it with: pip install 'mmes[torch]'",
            name="torch",
        ) from error
    if name == "auto":
        compiled = device.startswith("cuda") and find_spec("triton") is not None
        name = "triton" if compiled else "torch"
    return DEVICE_KERNELS[name](device, precision)


def native_problem() -> str | None:
    """Return why the native kernel cannot be loaded, or None if it can."""
    try:
        import mmes.kernels.native  # noqa: F401
    except ImportError as error:
        return str(error)
    return None
