"""Which kernel runs: the native one where it can be loaded, else the reference, which says so.

`KERNELS` names them; to add one, write its file and its line here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from mmes.errors import KernelWarning, warn_user
from mmes.kernels.reference import ReferenceKernel

if TYPE_CHECKING:
    from mmes.kernels.protocol import Kernel


def _native(threads: int | None) -> Kernel:
    from mmes.kernels.native import NativeKernel

    return NativeKernel(threads)


KERNELS: dict[str, Callable[[int | None], Kernel]] = {
    "native": _native,
    "reference": lambda threads: ReferenceKernel(),
}
"""What makes the kernel of each name, for a number of threads (None: as many as pay)."""


def choose_kernel(name: str = "auto", threads: int | None = None) -> Kernel:
    """Return the kernel of that name; ``"auto"`` takes the native one where it loads."""
    problem = native_problem() if name in ("auto", "native") else None
    if problem is not None and name == "native":
        raise ImportError(f"kernel='native' was asked for, but it cannot be loaded: {problem}")
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
    """Return the threads that MMES_THREADS asks for, where many runs share the cores; or None."""
    word = os.environ.get("MMES_THREADS", "")
    if not word:
        return None
    if not word.isdecimal() or int(word) < 1:
        raise ValueError(
            f"the environment variable MMES_THREADS must be an integer >= 1, not {word!r}"
        )
    return int(word)


def native_problem() -> str | None:
    """Return why the native kernel cannot be loaded, or None if it can."""
    try:
        import mmes.kernels.native  # noqa: F401
    except ImportError as error:
        return str(error)
    return None
