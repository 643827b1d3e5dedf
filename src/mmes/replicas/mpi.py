"""Replicas as the ranks of an MPI job: each rank sends its values to all others.

Every rank runs the same script. Rank 0 runs the loop, calls the callback and writes the checkpoint;
the others follow it inside their call of `minimize` and return the same result. If a rank dies, MPI
ends the whole job: start it again with a checkpoint and ``resume="auto"``.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mmes.base.arrays import Vector
from mmes.errors import EvaluationError, ReplicaMismatch, ReplicaWarning, warn_user
from mmes.evaluate.constrained import ConstrainedObjective
from mmes.evaluate.protocol import Evaluator
from mmes.evaluate.remote import Task, rebuilt, sendable
from mmes.replicas import digests
from mmes.replicas.engine import Terms
from mmes.replicas.head import HeadState
from mmes.replicas.replica import Replica
from mmes.replicas.shares import Batch, Cutting, SharedRound, ranges, unpacked
from mmes.strategies import AskTell

if TYPE_CHECKING:
    from mmes.run.result import Result

_BLOCK_BYTES = 64 * 2**20
_TAKEN = ("each", "check", "diverged")

Answer = tuple[Any, ...]
Objective = Callable[[bool, bool], Any]
"""See `SharesResult.share`."""


class MPI:
    """Replicas as the ranks of an MPI job.

    >>> mmes.minimize(f, x0, 0.5, workers=mmes.replicas.MPI())                # doctest: +SKIP

    started by ``mpiexec -n 64 python script.py``.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        The participating ranks; by default all.
    **terms
        `each`, `check` and `diverged`; see `mmes.replicas.engine.TERMS`.
    """

    def __init__(self, comm: Any = None, **terms: Any):
        for name in terms:
            if name not in _TAKEN:
                raise TypeError(f"MPI has no option {name!r}; known names are {', '.join(_TAKEN)}")
        self.terms = Terms.checked("MPI", **terms)
        if comm is None:
            try:
                from mpi4py import MPI as library  # type: ignore[import-not-found]
            except ImportError:
                raise ImportError('replicas on MPI need mpi4py: pip install "mmes[mpi]"') from None
            comm = library.COMM_WORLD
        self.comm = comm

    def evaluator(
        self, task: Task, retries: int = 3, lost: str = "raise", timeout: float | None = None
    ) -> Head:
        """Return the evaluator of rank 0."""
        if self.comm.Get_rank() != 0:
            raise RuntimeError(
                "only rank 0 starts evaluations; mmes.minimize makes the other ranks follow"
            )
        if timeout is not None and self.terms.each is None:
            raise ValueError(
                f"evaluation_timeout={timeout:g} needs MPI(each=...): a rank cannot be killed, "
                "but worker processes inside it can"
            )
        if self.comm.Get_size() == 1:
            warn_user(
                "MPI has one rank, so there are no replicas; start the script with mpiexec -n 4",
                ReplicaWarning,
            )
        settings = {"evaluation_timeout": timeout, "retries": retries, "on_lost": lost}
        return Head(self.comm, self.terms, task, settings | {"chunk_size": None})

    def share(self, run: Callable[[], Result], objective: Objective) -> Result:
        """See `SharesResult.share`: run on rank 0, follow on the others."""
        if self.comm.Get_rank() != 0:
            return _follow(self.comm, self.terms, objective)
        try:
            result = run()
        except BaseException as error:
            self.comm.bcast(("error", sendable(error)))
            raise
        self.comm.bcast(("end", result))
        return result


class Head(Evaluator):
    """The evaluator of rank 0; `settings` are for the worker processes inside a rank."""

    on_demand = True

    def __init__(self, comm: Any, terms: Terms, task: Task, settings: dict[str, Any]):
        self.retried = 0
        self._comm, self._terms, self._task, self._settings = comm, terms, task, settings
        self._here = Replica(task, terms.each, settings)
        self._course: HeadState | None = None
        self._runs = 0
        self._round: SharedRound | None = None
        self._rebuild = False
        self._there = 0  # the generation of the others

    def follow(self, es: AskTell) -> None:
        """Send the state to all ranks."""
        self._runs += 1
        self._course = HeadState(es, self._runs)
        objective = self._task.objective
        returned = objective.returned if isinstance(objective, ConstrainedObjective) else False
        how = (self._task.vectorized, self._task.catch, self._settings, returned)
        self._comm.bcast(("follow", how, self._course.kind, self._course.probe))
        found = self._comm.gather(("here", self._course.fingerprint))
        for rank, answer in enumerate(found):
            _raise_failure(answer, rank)
        ours = digests.machine() | self._course.fingerprint
        for rank, (_, theirs) in enumerate(found):
            differing = [
                f"{name} is {ours[name]} on rank 0 ({ours['host']}) and {theirs[name]} on rank "
                f"{rank} ({theirs['host']})"
                for name in digests.MUST_AGREE
                if ours[name] != theirs[name]
            ]
            if differing:
                raise ReplicaMismatch(
                    f"the ranks would not follow the same path: {'; '.join(differing)}"
                )
        self._hand_over()

    def begin(self, generation: int, rows: int) -> None:
        """Let all ranks evaluate their shares of a generation."""
        course = self._course
        assert course is not None
        if self._rebuild:
            self._hand_over()
        current = SharedRound(generation, rows)
        current.numbers = course.numbers()
        check = course.generation % self._terms.check == 0
        current.vectors = course.vectors() if check else None
        # With constraints rank 0 alone knows the values by which candidates are ranked.
        told = course.since(self._there) if self._task.constrained else ()
        self._comm.bcast(("work", course.run, course.generation, rows, check, told))
        self._round, self._there = current, course.generation

    def evaluate(self, points: Vector, generation: int, keep_going: Callable[[], bool]) -> Vector:
        current = self._round
        if current is None:
            if points.shape[0] == 0 or not keep_going():
                return np.empty(0)
            self._comm.bcast(("points", generation, np.array(points)))
            current = self._round = SharedRound(generation, points.shape[0])
        batches = _batches(points.shape[0], self._comm.Get_size())
        try:
            mine = self._here.handle(("points", generation, points[list(batches[0])]))
        except BaseException:
            self.close()  # the others wait for what this rank has to say
            raise
        self._round = None
        answers = self._comm.allgather((*mine[:4], current.numbers, current.vectors, mine[6]))
        return self._taken(current, answers, batches, points)

    def told(self, values: Vector) -> None:
        """Remember the values that the optimizer was told last."""
        if self._course is not None:
            self._course.told(values, self._course.generation)

    def revalued(self, values: Vector) -> None:
        """Remember the other values of that generation."""
        if self._course is not None:
            self._course.revalued(values)

    def close(self) -> None:
        """See `Evaluator.close`: ranks that wait for values are told that none will come."""
        if self._round is not None:
            self._round = None
            self._comm.allgather(("stopped",))
        self._here.handle(("close",))

    def _hand_over(self) -> None:
        assert self._course is not None
        self._rebuild, self._there = False, self._course.generation
        state = self._course.snapshot(copy=False)
        shapes = {name: (array.dtype.str, array.shape) for name, array in state.arrays.items()}
        self._comm.bcast(("adopt", state.run, state.entries, shapes, state.last))
        for array in state.arrays.values():
            flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            for first in range(0, flat.size, _BLOCK_BYTES):
                self._comm.Bcast(flat[first : first + _BLOCK_BYTES])
        for rank, answer in enumerate(self._comm.gather(("here",))):
            _raise_failure(answer, rank)

    def _taken(
        self,
        current: SharedRound,
        answers: list[Answer],
        batches: list[Batch],
        points: Vector,
    ) -> Vector:
        for rank, (batch, answer) in enumerate(zip(batches, answers, strict=False)):
            _raise_failure(answer, rank)
            _, data, _, repeated, numbers, vectors, failed = answer
            self.retried += repeated
            if numbers is not None and (numbers, vectors) != (current.numbers, current.vectors):
                self._diverged(rank, current.generation)
            if failed is not None:
                failed.raise_error(points[list(batch)], batch, current.generation)
            current.take(batch, unpacked(data, len(batch)))
        return current.first_part()

    def _diverged(self, rank: int, generation: int) -> None:
        text = f"the state of rank {rank} differs from that of rank 0 in generation {generation}"
        if self._terms.diverged == "raise":
            raise ReplicaMismatch(
                f"{text}: its memory or arithmetic is faulty. Values since the last matching "
                f"digests, at most {self._terms.check} generations ago, may belong to other "
                "points; diverged='rebuild' would continue"
            )
        warn_user(f"{text}; all ranks are rebuilt from the state of rank 0", ReplicaWarning)
        self._rebuild = True


def _follow(comm: Any, terms: Terms, objective: Objective) -> Result:
    """Follow rank 0 until it has a result."""
    signals = (signal.SIGINT, signal.SIGTERM)
    main = threading.current_thread() is threading.main_thread()
    # A signal reaches all ranks; rank 0 decides.
    former = {one: signal.signal(one, signal.SIG_IGN) for one in signals} if main else {}
    try:
        return _Follower(comm, terms, objective).serve()
    finally:
        for one, handler in former.items():
            signal.signal(one, handler)


class _Follower:
    """A rank other than 0."""

    def __init__(self, comm: Any, terms: Terms, objective: Objective):
        self._comm, self._terms, self._objective = comm, terms, objective
        self._constrained = False
        self._replica: Replica | None = None

    def serve(self) -> Result:
        while True:
            kind, *rest = self._comm.bcast(None)
            if kind == "end":
                return rest[0]
            if kind == "error":
                raise rebuilt(*rest[0])
            getattr(self, f"_{kind}")(*rest)

    def _follow(self, how: tuple[Any, ...], kind: bytes, probe: dict[str, Any]) -> None:
        vectorized, catch, settings, returned = how
        if self._replica is None:
            task = Task(self._objective(vectorized, returned), catch, vectorized)
            self._replica = Replica(task, self._terms.each, settings)
            self._constrained = task.constrained
        answer = self._replica.handle(("probe", kind, probe))
        if answer[0] == "here":
            ready = self._replica.handle(("prepare",))
            answer = ("here", digests.machine() | answer[1]) if ready[0] == "here" else ready
        self._comm.gather(answer)

    def _adopt(
        self, run: int, entries: dict[str, Any], shapes: dict[str, Any], last: bytes
    ) -> None:
        assert self._replica is not None
        answer = self._replica.handle(("state", run, entries, shapes))
        for name, (dtype, shape) in shapes.items():
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            for first in range(0, size, _BLOCK_BYTES):
                block = np.empty(min(_BLOCK_BYTES, size - first), np.uint8)
                self._comm.Bcast(block)
                entry = first // np.dtype(dtype).itemsize
                if answer[0] == "here":
                    answer = self._replica.handle(("block", run, name, entry, block.view(dtype)))
        if answer[0] == "here":
            answer = self._replica.handle(("adopt", run, last))
        self._comm.gather(answer)

    def _work(
        self, run: int, generation: int, rows: int, check: bool, told: tuple[bytes, ...]
    ) -> None:
        assert self._replica is not None
        batches = _batches(rows, self._comm.Get_size())
        mine = self._mine(batches)
        message = ("work", run, generation, generation - len(told), told, ranges(mine), check)
        answers = self._comm.allgather(self._replica.handle(message))
        if any(answer[0] != "done" or answer[6] is not None for answer in answers):
            return  # rank 0 will say what follows
        if self._constrained:
            return  # and by which values candidates are ranked
        values = np.empty(rows)
        for batch, answer in zip(batches, answers, strict=False):
            values[list(batch)] = np.frombuffer(answer[1])
        self._replica.handle(("told", run, generation, (values.tobytes(),)))

    def _points(self, generation: int, points: Vector) -> None:
        assert self._replica is not None
        mine = self._mine(_batches(len(points), self._comm.Get_size()))
        self._comm.allgather(self._replica.handle(("points", generation, points[list(mine)])))

    def _mine(self, batches: list[Batch]) -> Batch:
        rank = self._comm.Get_rank()
        return batches[rank] if rank < len(batches) else ()


def _batches(rows: int, size: int) -> list[Batch]:
    """Return the rows of each rank; the same on all of them."""
    return Cutting(size, True, 0.0).batches(rows)


def _raise_failure(answer: Answer, rank: int) -> None:
    if answer[0] in ("here", "done"):
        return
    _, kind, text, trace = answer if answer[0] == "failed" else ("", *map(str, answer), "", "")[:4]
    made = MemoryError if kind == "MemoryError" else EvaluationError
    error = made(f"rank {rank} cannot take part: {kind}: {text}")
    error.add_note(f"The traceback there:\n{trace.rstrip()}")
    raise error
