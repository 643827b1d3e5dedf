"""Which kernel runs: the native one where it can be loaded, else the reference, which says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmes.errors import KernelWarning, warn_user
from mmes.kernels.reference import ReferenceKernel

if TYPE_CHECKING:
    from mmes.kernels.protocol import Kernel


def choose_kernel(name: str = "auto", threads: int | None = None) -> Kernel:
    """Return the kernel of that name; ``"auto"`` takes the native one where it loads."""
    if name == "reference":
        return ReferenceKernel()
    problem = native_problem()
    if problem is None:
        from mmes.kernels.native import NativeKernel

        return NativeKernel(threads)
    if name == "native":
        raise ImportError(f"kernel='native' was asked for, but it cannot be loaded: {problem}")
    warn_user(
        f"the native kernel cannot be loaded ({problem}); "
        "the numpy reference is used, which is many times slower",
        KernelWarning,
    )
    return ReferenceKernel()


def native_problem() -> str | None:
    """Return why the native kernel cannot be loaded, or None if it can."""
    try:
        import mmes.kernels.native  # noqa: F401
    except ImportError as error:
        return str(error)
    return None
