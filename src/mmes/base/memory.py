"""The available memory, checked before anything large is allocated."""

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
    container = cgroup_headroom()
    return free if container is None else min(free, container)


def in_words(count: float) -> str:
    """Return a number of bytes in readable form, for example ``"7.45 GiB"``."""
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


def cgroup_headroom(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> int | None:
    """Return the bytes that the control groups of this process leave; None without a limit."""
    rooms = [_room(root / "memory", "limit_in_bytes", "usage_in_bytes", "total_")]  # version 1
    try:
        lines = own.read_text().splitlines()
    except OSError:
        lines = []
    name = next((line[3:] for line in lines if line.startswith("0::")), "/")
    folder = root / name.lstrip("/")
    while folder == root or root in folder.parents:
        rooms.append(_room(folder, "max", "current", ""))
        folder = folder.parent
    limited = [room for room in rooms if room is not None]
    return min(limited, default=None)


def _room(folder: Path, limit: str, used: str, prefix: str) -> int | None:
    try:
        most = int((folder / f"memory.{limit}").read_text())
        taken = int((folder / f"memory.{used}").read_text())
    except (OSError, ValueError):  # no such group, or "max": no limit
        return None
    # Files that the kernel keeps in memory are counted as used, and given up when memory is needed.
    kept = {f"{prefix}active_file", f"{prefix}inactive_file"}
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
        cached = sum(int(line.split()[1]) for line in lines if line.split()[0] in kept)
    except (OSError, ValueError, IndexError):
        cached = 0
    return max(most - max(taken - cached, 0), 0)
