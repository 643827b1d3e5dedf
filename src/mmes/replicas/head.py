"""The state of the head: its optimizer, the values told, its snapshots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mmes.base import memory
from mmes.base.arrays import Arrays, Vector
from mmes.evaluate.workers.pickling import pickled_classes
from mmes.replicas import digests
from mmes.strategies import STRATEGIES, AskTell

# A replica that lacks the values of more generations copies the head's state instead.
_KEPT_GENERATIONS = 64
# With a copy of the state, the run continues while a new replica reads it.
_COPY_SHARE = 0.25


@dataclass(frozen=True)
class Snapshot:
    """A state for a replica to copy, and the values that led to it."""

    # run, generation: the run it belongs to, and the generation.
    run: int
    generation: int
    # entries, arrays: the state.
    entries: dict[str, Any]
    arrays: Arrays = field(repr=False)
    last: bytes  # The values that the optimizer was told last.
    copied: bool  # Whether the arrays are copies, so that the run may continue.


class HeadState:
    """What replicas follow: the head's optimizer, with a number `run` of its own.

    `probe` is what `digests.probe` needs, `fingerprint` describes the head's machine and has its
    digest of the probe, and `kind` has the strategy and the manifold as pickled classes.
    """

    def __init__(self, es: AskTell, run: int):
        if not es.replicable():
            able = ", ".join(n for n, kind in STRATEGIES.items() if kind.replicable())
            raise ValueError(
                f"the strategy {es.name!r} cannot be used with replicas, because it does not "
                "give the same bits on every machine; use strategy='mmes' or another of "
                f"{able}, or send the candidates with workers=executor"
            )
        self.es, self.run = es, run
        self.kind = pickled_classes(type(es), type(es.manifold))
        self.probe = digests.probe_of(es)
        self.fingerprint = digests.machine() | digests.probe(type(es), self.probe)
        self._rows = es.population_size
        self._values: dict[int, bytes] = {}
        self._snapshot: Snapshot | None = None

    @property
    def generation(self) -> int:
        """The generation of the head."""
        return self.es.generation

    @property
    def outgrown(self) -> bool:
        """Whether the population has grown since, which the values do not show."""
        return self.es.population_size != self._rows

    def told(self, values: Vector, needed: int) -> None:
        """Keep the values of a generation; delete old ones before `needed`."""
        self._snapshot = None
        self._values[self.generation - 1] = np.asarray(values, dtype=np.float64).tobytes()
        oldest = min(self.generation - _KEPT_GENERATIONS, needed)
        while (first := next(iter(self._values))) < oldest:
            del self._values[first]

    def revalued(self, values: Vector) -> None:
        """Keep the other values of the generation told last, which follow the first."""
        self._values[self.generation - 1] += np.asarray(values, dtype=np.float64).tobytes()

    def since(self, generation: int) -> tuple[bytes, ...] | None:
        """Return the values from a generation on, told and revalued; None if some were deleted."""
        try:
            return tuple(self._values[number] for number in range(generation, self.generation))
        except KeyError:
            return None

    def numbers(self) -> bytes:
        """Return the digest of the head's numbers."""
        return digests.scalar_digest(self.es, self._last())

    def vectors(self) -> bytes:
        """Return the digest of the head's vectors."""
        return digests.vector_digest(self.es)

    def snapshot(self, copy: bool) -> Snapshot:
        """Return the current state; copied, if requested and if it fits into memory."""
        if self._snapshot is not None and self._snapshot.generation == self.generation:
            return self._snapshot
        entries = self.es.state(copy=False)
        arrays: Arrays = entries.pop("arrays")
        size = sum(array.nbytes for array in arrays.values())
        copy = copy and size < _COPY_SHARE * memory.available_bytes()
        arrays = {name: np.array(a, copy=True if copy else None) for name, a in arrays.items()}
        last = self._last()
        self._snapshot = Snapshot(self.run, self.generation, entries, arrays, last, copy)
        return self._snapshot

    def _last(self) -> bytes:
        return self._values.get(self.generation - 1, b"")
