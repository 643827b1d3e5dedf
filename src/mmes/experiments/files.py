"""Files that are there whole or not at all, and names that any file system takes."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

LONGEST_STEM = 80


def write_atomically(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file so that it is there whole or not at all, even if the machine loses power."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex}.part"
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all."""
    write_atomically(path, lambda file: file.write(text.encode()))


def write_json(path: Path, data: Any) -> None:
    """Write data as JSON, whole or not at all."""
    write_text(path, json.dumps(data, indent=1, sort_keys=True))


def file_stem(text: str) -> str:
    """Return a name for a file about `text`: letters, digits and hyphens; long ones end in a hash.

    Labels of problems are the user's and may be of any length; file systems allow 255 bytes.
    """
    stem = "".join(c if c.isalnum() else "-" for c in text.lower())
    if len(stem.encode()) <= LONGEST_STEM:
        return stem
    short = stem.encode()[: LONGEST_STEM - 13].decode(errors="ignore")
    return f"{short}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
