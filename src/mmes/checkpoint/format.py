"""Checkpoints: a safe file format, written atomically, verified before use.

A checkpoint is a zip archive of ``.npy`` members and one ``header.json``. Nothing is compressed, so
that no member can be larger than the file and the arrays can be mapped instead of read; nothing is
pickled, so that loading runs no code; no member's name is ever used as a path. The header lists
each array with its type, shape and digest; the archive's comment holds the digest of the header.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import mmap
import os
import stat
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mmes.base.arrays import Arrays
from mmes.base.version import __version__
from mmes.checkpoint import files
from mmes.checkpoint.migration import from_format_1
from mmes.errors import (
    CheckpointCorrupt,
    CheckpointError,
    CheckpointTooNew,
    CheckpointWarning,
    warn_user,
)

FORMAT = 2
"""The format that is written. All formats up to this one can be read."""

_HEADER = "header.json"
_NOT_FINITE = "__float__"
# Parsed, text takes some thirty times its size: with these limits no file, however it is made,
# takes more than 200 MB besides its arrays.
_HEADER_LIMIT = 4 * 2**20
_DIRECTORY_LIMIT = 2**20
_CHUNK = 8 * 2**20
_DTYPES = ("<f8", "<f4", "<i8", "<i4", "<u8", "<u4", "|b1", "|u1", "|i1")
_LOCAL_HEADER = struct.Struct(
    "<26xHH"
)  # of a zip member: the lengths of its name and of its extra field
# The end of a zip archive, and what large ones have before it: the length of the list of members.
_END_MARK, _END64_MARK = b"PK\x05\x06", b"PK\x06\x06"
_END = struct.Struct("<12xL6x")
_END64 = struct.Struct("<40xQ8x")
_LOCATOR64 = 20
_COMMENT = 32  # the digest of the header, in hexadecimal


def previous_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of the previous checkpoint."""
    path = Path(path)
    return path.with_name(path.name + ".previous")


def partial_path(path: str | os.PathLike[str]) -> Path:
    """Return the name under which a checkpoint is written before it is complete."""
    path = Path(path)
    return path.with_name(path.name + ".partial")


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a checkpoint at that path, or a previous one."""
    return os.path.lexists(path) or os.path.lexists(previous_path(path))


# Writing


def write(path: str | os.PathLike[str], state: dict[str, Any], arrays: Arrays) -> None:
    """Write a checkpoint so that there is a complete one on disk at every moment.

    The new file is written beside the old one, flushed to the disk, and then takes its place; the
    old one is kept as ``<path>.previous``. If anything goes wrong, the old files stay unchanged and
    the unfinished one is removed. The state holds numbers, strings, lists and dicts of them; the
    arrays are streamed to the file, never copied as a whole.

    Raises
    ------
    OSError
        If the disk is full, the folder missing or not writable.
    CheckpointError
        If another process is writing the same checkpoint.
    """
    path = Path(path)
    partial = partial_path(path)
    with files.new_file(partial) as file:
        try:
            _write_archive(file, state, arrays)
            file.flush()
            os.fsync(file.fileno())
            if not files.is_same(partial, file.fileno()):
                raise CheckpointError(f"another process has removed or replaced {partial}")
            _keep_previous(path)
            os.replace(partial, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(partial)
            raise
    _sync_folder(path.parent)


def _write_archive(file: IO[bytes], state: dict[str, Any], arrays: Arrays) -> None:
    listed = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for number, (name, array) in enumerate(arrays.items()):
            array = np.asarray(array, order="C")
            if array.dtype.str not in _DTYPES:
                raise TypeError(f"array {name!r} has the type {array.dtype}, which is not stored")
            member = f"{number}.npy"
            digest = hashlib.blake2b(digest_size=16)
            with archive.open(_info(member), "w", force_zip64=True) as out:
                for chunk in _npy_chunks(array):
                    digest.update(chunk)
                    out.write(chunk)
            listed.append(
                {
                    "name": name,
                    "member": member,
                    "dtype": array.dtype.str,
                    "shape": list(array.shape),
                    "blake2b": digest.hexdigest(),
                }
            )
        header = {
            "format": FORMAT,
            "library": __version__,
            "state": _to_json(state),
            "arrays": listed,
        }
        text = json.dumps(header, allow_nan=False).encode()
        if len(text) > _HEADER_LIMIT:
            raise CheckpointError(
                f"the state without its arrays takes {len(text)} bytes, but at most "
                f"{_HEADER_LIMIT} are allowed; are the notes too long?"
            )
        with archive.open(_info(_HEADER), "w") as out:
            out.write(text)
        archive.comment = hashlib.blake2b(text, digest_size=16).hexdigest().encode()


def _info(member: str) -> zipfile.ZipInfo:
    # A fixed time: equal states make equal files.
    return zipfile.ZipInfo(member, (1980, 1, 1, 0, 0, 0))


def _npy_chunks(array: NDArray[Any]) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a .npy file; the array itself as views, chunk by chunk."""
    header = _Bytes()
    # type: ignore[arg-type]
    npy.write_array_header_1_0(header, npy.header_data_from_array_1_0(array))
    yield bytes(header)
    if array.size:
        data = memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        for start in range(0, len(data), _CHUNK):
            yield data[start : start + _CHUNK]


class _Bytes(bytearray):
    write = bytearray.extend


def _keep_previous(path: Path) -> None:
    if not path.exists():
        return
    previous = previous_path(path)
    second_name = previous.with_name(previous.name + ".link")
    try:
        # By a second name, so that `path` exists at every moment.
        second_name.unlink(missing_ok=True)
        os.link(path, second_name)
    except OSError:  # a file system without hard links
        os.replace(path, previous)
        return
    try:
        os.replace(second_name, previous)
    except BaseException:  # also an impatient second Ctrl-C
        second_name.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # some file systems cannot
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# Reading


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Return the state and the arrays of the newest checkpoint that can be used.

    If the file is corrupt, or missing because a machine died between two renamings, the previous
    one is used, with a warning. The arrays are read-only maps of the file: they cost no memory
    until they are copied.

    Raises
    ------
    FileNotFoundError
        If there is none.
    CheckpointCorrupt
        If neither the file nor the previous one can be used.
    CheckpointTooNew
        If a newer version of the library wrote it.
    """
    path = Path(path)
    previous = previous_path(path)
    try:
        return read_one(path)
    except (CheckpointCorrupt, FileNotFoundError) as error:
        if not previous.exists():
            raise
        try:
            found = read_one(previous)
        except CheckpointCorrupt as second:
            raise CheckpointCorrupt(
                f"{error}; the previous checkpoint cannot be used either: {second}"
            ) from error
        why = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be used ({error})"
        warn_user(
            f"the checkpoint {path} {why}; the previous one, {previous}, is used",
            CheckpointWarning,
        )
        return found


def read_one(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Return the state and the arrays of exactly this file, verified; see `read`."""
    path = Path(path)
    # Without waiting: opening a pipe would wait for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CheckpointCorrupt(f"{path} cannot be read: {error}") from error
    kind = os.fstat(handle).st_mode
    if stat.S_ISDIR(kind):
        os.close(handle)
        raise IsADirectoryError(f"{path} is a folder, not a checkpoint")
    with open(handle, "rb") as file:
        if not stat.S_ISREG(kind):
            raise CheckpointCorrupt(
                f"{path} is not a checkpoint: it is a pipe, a socket or a device, not a regular "
                "file"
            )
        try:
            return _read_archive(file, path)
        except CheckpointError:
            raise
        except OSError as error:
            raise CheckpointCorrupt(f"{path} cannot be read: {error}") from error
        except zipfile.BadZipFile as error:
            raise CheckpointCorrupt(f"{path} is corrupt or not a checkpoint ({error})") from error
        # A damaged archive makes zipfile raise nearly anything; none of it means more than this.
        except Exception as error:
            raise CheckpointCorrupt(
                f"{path} is corrupt ({type(error).__name__}: {error})"
            ) from error


def _read_archive(file: IO[bytes], path: Path) -> tuple[dict[str, Any], Arrays]:
    size = os.fstat(file.fileno()).st_size
    _check_directory(file, size, path)
    with zipfile.ZipFile(file) as archive:
        members = {info.filename: info for info in archive.infolist()}
        _check_sizes(archive.infolist(), members, size, path)
        text = archive.read(_HEADER)
        digest = hashlib.blake2b(text, digest_size=16).hexdigest().encode()
        if archive.comment != digest:
            raise CheckpointCorrupt(f"{path} is corrupt: the header does not match its digest")
        header = json.loads(text)
        number = header["format"]
        if type(number) is not int or number < 1:
            raise CheckpointCorrupt(f"{path} is corrupt: its format is {number!r}")
        if number > FORMAT:
            raise CheckpointTooNew(
                f"{path} was written by a newer version of the library, {header['library']!r} "
                f"(checkpoint format {number}); this one reads formats up to {FORMAT}: upgrade "
                "mmes to resume it"
            )
        if len(header["arrays"]) != len(members) - 1:
            raise CheckpointCorrupt(f"{path} is corrupt: members are missing or were added")
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        arrays = {
            entry["name"]: _mapped(archive, members[entry["member"]], entry, file, whole)
            for entry in header["arrays"]
        }
    state = _from_json(header["state"])
    if not isinstance(state, dict):
        raise CheckpointCorrupt(f"{path} is corrupt: its state is not a table of entries")
    return from_format_1(state, arrays) if number == 1 else (state, arrays)


def _check_directory(file: IO[bytes], size: int, path: Path) -> None:
    """Refuse a list of members that is too long, before all of it is read."""
    file.seek(max(size - _END.size - _COMMENT - _END64.size - _LOCATOR64, 0))
    tail = file.read()
    end = len(tail) - _END.size - _COMMENT
    # Only at this place, so that zipfile cannot find another end.
    if end < 0 or tail[end : end + 4] != _END_MARK or tail[-_END.size :][:4] == _END_MARK:
        raise CheckpointCorrupt(f"{path} is corrupt or not a checkpoint")
    lengths = [*_END.unpack_from(tail, end)]
    if len(tail) >= _END64.size and tail[:4] == _END64_MARK:
        lengths += _END64.unpack_from(tail)
    if max(lengths) > _DIRECTORY_LIMIT:
        raise CheckpointCorrupt(f"{path} is corrupt: its list of members is too long")


def _check_sizes(
    listed: list[zipfile.ZipInfo], members: dict[str, zipfile.ZipInfo], size: int, path: Path
) -> None:
    if len(members) != len(listed):
        raise CheckpointCorrupt(f"{path} is corrupt: two members have the same name")
    if _HEADER not in members:
        raise CheckpointCorrupt(f"{path} is not a checkpoint: it has no {_HEADER}")
    for info in listed:
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise CheckpointCorrupt(f"{path} is corrupt: member {info.filename!r} is compressed")
    if sum(info.file_size for info in listed) > size or members[_HEADER].file_size > _HEADER_LIMIT:
        raise CheckpointCorrupt(f"{path} is corrupt: its members are larger than the file")


def _mapped(
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    entry: dict[str, Any],
    file: IO[bytes],
    whole: mmap.mmap,
) -> NDArray[Any]:
    """Return an array as a view of the file, after checking its entry and digest."""
    shape = tuple(entry["shape"])
    if entry["dtype"] not in _DTYPES or any(type(k) is not int or k < 0 for k in shape):
        raise ValueError(f"array {entry['name']!r} has the type {entry['dtype']!r}, shape {shape}")
    dtype = np.dtype(entry["dtype"])
    count = math.prod(shape)
    digest = hashlib.blake2b(digest_size=16)
    with archive.open(info) as member:
        if npy.read_magic(member) != (1, 0):  # type: ignore[arg-type]
            raise ValueError(f"array {entry['name']!r} is not in version 1.0 of the npy format")
        described = npy.read_array_header_1_0(member)  # type: ignore[arg-type]
        start = member.tell()
        if described != (shape, False, dtype) or start + count * dtype.itemsize != info.file_size:
            raise ValueError(f"array {entry['name']!r} is not what the header says")
        member.seek(0)
        while chunk := member.read(_CHUNK):  # to the end, where zipfile compares the CRC
            digest.update(chunk)
    if digest.hexdigest() != entry["blake2b"]:
        raise ValueError(f"array {entry['name']!r} does not match its digest")
    file.seek(info.header_offset)
    name_length, extra_length = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    offset = info.header_offset + _LOCAL_HEADER.size + name_length + extra_length + start
    if not count:
        return np.empty(shape, dtype)
    return np.frombuffer(whole, dtype, count, offset).reshape(shape)


# JSON


def as_stored(value: Any) -> Any:
    """Return a value as a checkpoint returns it: a copy, with lists instead of tuples.

    Raises TypeError or ValueError if JSON cannot represent it.
    """
    return _from_json(json.loads(json.dumps(_to_json(value), allow_nan=False)))


def _to_json(value: Any) -> Any:
    """Return a value in JSON types, which have no infinity and no NaN."""
    if isinstance(value, dict):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_NOT_FINITE: str(value)}
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {_NOT_FINITE}:
            return float(value[_NOT_FINITE])
        return {key: _from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    return value
