"""Whether two machines hold the same search: a fingerprint before the run, digests during it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import socket
import warnings
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base import memory
from mmes.base.arrays import Arrays
from mmes.base.randomness import Stream, uniforms
from mmes.base.tensors import to_numpy
from mmes.base.version import __version__
from mmes.checkpoint import FORMAT
from mmes.errors import MMESWarning
from mmes.spaces.manifolds import manifold_from
from mmes.strategies import AskTell

_PROBE_GENERATIONS = 60
_PROBE_VARIABLES = 500
_PROBE_OPTIONS = {"population_size": 45, "archive_size": 40, "seed": 1, "threads": 1}
# A manifold of the run's own is probed as it is, unless that would take long.
_PROBED_MANIFOLD = 20_000

MUST_AGREE = ("mmes", "checkpoint format", "probe")
"""The entries of a fingerprint without which replicas cannot work together."""
MAY_DIFFER = ("machine type", "Python", "numpy", "kernel")
"""The entries of which a difference is only told."""


def scalar_digest(es: AskTell, values: bytes) -> bytes:
    """Return a digest (8 bytes) of the scalars of a state and of the values told last.

    The optimizer is between two generations; there are no values before the first.
    """
    entries = es.state(copy=False)
    del entries["arrays"], entries["options"]
    text = json.dumps(entries, sort_keys=True, default=float).encode()
    return hashlib.blake2b(text + values, digest_size=8).digest()


def vector_digest(es: AskTell) -> bytes:
    """Return a digest (4 bytes) of the vectors: mean, path, best point and newest direction.

    The whole archive would take a second per gigabyte. A row that differs is detected as soon as it
    is mixed into a parent.
    """
    total = 0
    arrays = es.state(copy=False)["arrays"]
    for name, array in sorted(arrays.items()):
        if name not in ("lower", "upper"):  # constant
            part = array if array.ndim < 2 else _newest(array, arrays)
            total = zlib.crc32(_bytes(part), total)
    return total.to_bytes(4, "little")


def _newest(archive: NDArray[Any], arrays: Arrays) -> NDArray[Any]:
    """Return the row of an archive that was written last; the last row if none is listed."""
    for name, order in arrays.items():
        if name.endswith("order") and order.size and order.size == len(archive):
            return archive[int(order[-1])]
    return archive[-1:]


def _bytes(array: NDArray[Any]) -> memoryview:
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def machine() -> dict[str, Any]:
    """Return a description of the machine that this process runs on."""
    return {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "mmes": __version__,
        "checkpoint format": FORMAT,
        "machine type": platform.machine(),
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "available bytes": memory.available_bytes(),
    }


def probe_of(es: AskTell) -> dict[str, Any]:
    """Return what `probe` needs to know about a run."""
    manifold = es.manifold
    whole = manifold is not None and manifold.ambient_dim <= _PROBED_MANIFOLD
    return {
        "options": dict(es.options),
        "kernel": kernel_family(es),
        "place": {} if es.kernel.device is None else {"device": es.options["device"]},
        "bounded": es.box is not None,
        "manifold": manifold.description() if manifold is not None and whole else None,
        "point": np.array(es.mean) if whole else None,
    }


def kernel_family(es: AskTell) -> str:
    """Return the kernel of an optimizer as the option ``kernel`` names it."""
    return es.kernel.name.split()[0]


def probe(kind: type[AskTell], of: dict[str, Any]) -> dict[str, str]:
    """Return the digest of a short search with the strategy and options of a run.

    Its values come from a fixed generator, so that the rounding of the objective does not matter.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MMESWarning)
        es = _probe_search(kind, of)
    digest = hashlib.blake2b(digest_size=16)
    for generation in range(_PROBE_GENERATIONS):
        points = to_numpy(es.ask())
        digest.update(_bytes(points))
        es.tell(uniforms(points.shape[0], 1, Stream.CHILD_SEED, generation))
        digest.update(float(es.sigma).hex().encode())
    return {"probe": digest.hexdigest(), "kernel": es.kernel.name}


def _probe_search(kind: type[AskTell], of: dict[str, Any]) -> AskTell:
    known = {option.name for option in kind.option_table()}
    fixed: dict[str, Any] = _PROBE_OPTIONS | {"kernel": of["kernel"], "stagnation_window": "off"}
    fixed = {name: value for name, value in fixed.items() if name in known}
    start: Any = np.ones(_PROBE_VARIABLES)
    more: dict[str, Any] = {}
    if of["manifold"] is not None:
        start, more = of["point"], {"manifold": manifold_from(of["manifold"])}
    elif of["bounded"]:
        more = {"bounds": (-2.0 * start, 2.0 * start)}
    try:
        return kind(start, 0.5, **more, **of["options"] | fixed)
    except ValueError:  # options that do not go with the probe's size
        return kind(start, 0.5, **more, **fixed)
