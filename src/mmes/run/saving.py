"""When a run writes its checkpoint, and what happens if it cannot."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mmes.errors import CheckpointError, CheckpointExists, CheckpointWarning, warn_user

# Writing takes at most about this share of a run's time, however large the state is.
_WRITING_SHARE = 0.1


class Saver:
    """Writes the state of a run to its checkpoint when it is time.

    Parameters
    ----------
    path : str, path or None
        The checkpoint; None never writes.
    limits : mapping
        Options of the run: the seconds between two checkpoints, or the generations instead, and
        whether an error is raised if one cannot be written; otherwise there is one warning and the
        run continues.
    """

    def __init__(self, path: str | os.PathLike[str] | None, limits: Mapping[str, Any]):
        self.path = None if path is None else _checked_path(path)
        self._seconds = limits["checkpoint_seconds"]
        self._generations = limits["checkpoint_generations"]
        self._strict = limits["checkpoint_strict"]
        self._warned = False
        self._generation = 0
        self._wrote_at = time.monotonic()
        self._wait = self._seconds

    def read(self) -> dict[str, Any] | None:
        """Return the state in the existing checkpoint, if there is one."""
        if self.path is None:
            return None
        from mmes import checkpoint  # here: few runs need it, and zipfile is slow to import

        if not checkpoint.exists(self.path):
            return None
        entries, arrays = checkpoint.read(self.path)
        return entries | {"arrays": arrays}

    def refuse_existing(self, over: str | os.PathLike[str] | None = None) -> None:
        """Raise CheckpointExists if there is a checkpoint, unless it is the one `over`."""
        if self.path is None:
            return
        from mmes import checkpoint

        if not checkpoint.exists(self.path):
            return
        if over is None or self.path != Path(over).absolute():
            raise CheckpointExists(
                f"the checkpoint {self.path} already exists: resume it with mmes.resume or "
                "resume='auto', choose another name, or delete it"
            )

    def begin(self, generation: int) -> None:
        """Start the interval here."""
        self._generation = generation
        self._wrote_at = time.monotonic()

    def save_if_due(self, generation: int, state: Callable[[], dict[str, Any]]) -> None:
        """Write the state if the interval is over."""
        if self.path is None:
            return
        if self._generations is not None:
            due = generation - self._generation >= self._generations
        else:
            due = time.monotonic() - self._wrote_at >= self._wait
        if due:
            self.save(generation, state)

    def save(self, generation: int, state: Callable[[], dict[str, Any]]) -> bool:
        """Write the state now; return whether it is on disk."""
        if self.path is None:
            return False
        from mmes import checkpoint

        began = time.monotonic()
        try:
            entries = state()
            checkpoint.write(self.path, entries, entries.pop("arrays"))
        except (OSError, CheckpointError) as error:
            if self._strict:
                raise CheckpointError(
                    f"the checkpoint {self.path} cannot be written: {error}"
                ) from error
            if not self._warned:
                self._warned = True
                warn_user(
                    f"the checkpoint {self.path} cannot be written ({error}); the run continues "
                    "and tries again at every interval. This warning is issued once per run",
                    CheckpointWarning,
                )
            written = False
        else:
            written = True
        self._generation = generation
        self._wrote_at = time.monotonic()
        self._wait = max(self._seconds, (self._wrote_at - began) / _WRITING_SHARE)
        return written


def _checked_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"checkpoint must be the path of a file, not {path!r} (a {type(path).__name__})"
        )
    found = Path(path)
    if found.is_dir():
        raise IsADirectoryError(f"checkpoint must be the path of a file, but {found} is a folder")
    if not found.parent.is_dir():
        raise FileNotFoundError(
            f"the folder of the checkpoint, {found.parent}, does not exist; create it first"
        )
    if not os.access(found.parent, os.W_OK):
        raise PermissionError(f"the folder of the checkpoint, {found.parent}, is not writable")
    return found.absolute()  # a later change of folder must not move it


def checked_notes(notes: Any) -> dict[str, Any]:
    """Return a copy of the notes as a checkpoint stores them.

    Raises
    ------
    TypeError
        If they are not a dict, or JSON cannot represent them.
    """
    if not isinstance(notes, dict):
        raise TypeError(f"notes must be a dict, not {notes!r} (a {type(notes).__name__})")
    from mmes.checkpoint import as_stored

    try:
        return as_stored(notes)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"notes must be strings, numbers, lists and dicts that JSON can represent ({error})"
        ) from error
