"""The number of available cores."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return how many cores this process may use, as set by `taskset` or a scheduler."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1
