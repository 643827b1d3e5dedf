"""How much memory there is, asked before anything large is allocated."""

from __future__ import annotations

import os
from pathlib import Path

# The share of the available memory that a run may plan to use; the rest is for the objective and
# the interpreter.
USABLE_SHARE = 0.8


def available_bytes() -> int:
    """Return the bytes that this process could still allocate without swapping or being killed."""
    free = _meminfo_available()
    if free is None:
        try:
            free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError, AttributeError):
            free = 4 * 2**30
    container = _cgroup_headroom()
    return free if container is None else min(free, container)


def in_words(count: float) -> str:
    """Return a number of bytes as a person writes it, for example ``"7.45 GiB"``."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def _meminfo_available() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None


def _cgroup_headroom() -> int | None:
    folder = Path("/sys/fs/cgroup")
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            return max(int((folder / limit).read_text()) - int((folder / used).read_text()), 0)
        except (OSError, ValueError):  # no such group, or "max": no limit
            continue
    return None
