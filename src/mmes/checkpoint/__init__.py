"""Checkpoints: a safe file format and atomic files."""

from mmes.checkpoint.format import (
    FORMAT,
    as_stored,
    exists,
    partial_path,
    previous_path,
    read,
    read_one,
    write,
)

__all__ = [
    "FORMAT",
    "as_stored",
    "exists",
    "partial_path",
    "previous_path",
    "read",
    "read_one",
    "write",
]
