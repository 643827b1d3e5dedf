"""The native helper, if it could be loaded."""

from __future__ import annotations

try:
    from mmes.problems import _compiled as helper
except ImportError:  # not built, or not for this machine: numpy evaluates
    helper = None


def levels() -> list[str]:
    """Return the SIMD levels of the native helper on this machine, best first; [] without it."""
    return [] if helper is None else helper.levels()
