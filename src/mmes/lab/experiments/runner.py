"""Carry out many runs on all cores, so that a kill at any moment loses only runs in progress.

Every worker stores its own finished run before it reports back; a later start skips what is stored.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import wait as wait_for_sentinel
from pathlib import Path

from mmes.base.cores import usable_cores
from mmes.lab.experiments.execute import perform
from mmes.lab.experiments.plan import Trial, unique
from mmes.lab.experiments.progress import TrialDisplay, progress_display
from mmes.lab.experiments.results.store import Store, TrialResult

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "MMES_THREADS",
)
"""One thread per worker: the cores are already busy with other runs."""


@dataclass(frozen=True)
class Report:
    """How a session of runs went."""

    finished: int  # Runs carried out now.
    skipped: int  # Runs that were stored before.
    failed: dict[str, str]  # Message of every failed run, by the run's key.
    postponed: int  # Runs not begun because the time was up.
    seconds: float  # Wall time of the session.


def _leave_with_parent() -> None:
    """End this worker as soon as the runner has ended, so that a kill leaves no orphan."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait_for_sentinel([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(run: Trial, folder: Path, function: Callable[[Trial], TrialResult]) -> str | None:
    """Carry out and store one run; return why it failed, or None."""
    store = Store(folder)
    try:
        store.write(run, function(run))
    except Exception as error:
        first_line = str(error).strip().partition("\n")[0]
        message = f"{type(error).__name__}: {first_line[:300]}"
        store.write_failure(run, message)
        return message
    return None


@contextmanager
def _single_threads() -> Iterator[None]:
    """Set the thread counts that workers inherit, and put the old ones back."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@dataclass
class Session:
    """The state of one call of `execute`."""

    store: Store
    function: Callable[[Trial], TrialResult]
    display: TrialDisplay
    deadline: float
    finished: int = 0
    failed: dict[str, str] = field(default_factory=dict)

    def note(self, run: Trial, message: str | None) -> None:
        """Count a run that is over."""
        if message is None:
            self.finished += 1
        else:
            self.failed[run.key] = message
        self.display.done(run, message)

    def go(self, waiting: deque[Trial], workers: int) -> None:
        """Work through the queue, then, one at a time, through the runs a worker died with.

        All runs in progress when a worker dies are lost with the pool. A run that is killed again
        when it runs alone is the cause itself.
        """
        suspects: deque[Trial] = deque()
        while waiting and time.monotonic() < self.deadline:
            suspects += self._drain(waiting, workers)
        while suspects and time.monotonic() < self.deadline:
            run = suspects.popleft()
            for guilty in self._drain(deque([run]), 1):
                message = "its worker process was killed, twice (out of memory?)"
                self.store.write_failure(guilty, message)
                self.note(guilty, message)
        waiting += suspects

    def _drain(self, waiting: deque[Trial], workers: int) -> list[Trial]:
        """Work in one pool until the queue is empty or the pool breaks; return what broke."""
        busy: dict[Future[str | None], Trial] = {}
        broken: list[Trial] = []
        pool = ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_leave_with_parent,
        )
        try:
            while True:
                # No more in flight than workers, so that few runs are lost with the pool.
                while waiting and len(busy) < workers and not broken:
                    if time.monotonic() >= self.deadline:
                        break
                    run = waiting.popleft()
                    try:
                        future = pool.submit(_work, run, self.store.folder, self.function)
                    except BrokenProcessPool:
                        broken.append(run)
                        break
                    busy[future] = run
                    self.display.begun(run)
                if not busy:
                    return broken
                done, _ = wait(busy, return_when=FIRST_COMPLETED)
                for future in done:
                    run = busy.pop(future)
                    try:
                        self.note(run, future.result())
                    except BrokenProcessPool:
                        broken.append(run)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def execute(
    runs: Iterable[Trial],
    store: Store,
    *,
    workers: int | None = None,
    time_limit: float | None = None,
    function: Callable[[Trial], TrialResult] = perform,
    show: bool = True,
) -> Report:
    """Carry out the runs that are not in the store yet, in this order.

    A key that comes twice is run once. By default there is one process per usable core, each with
    one run at a time. After `time_limit` seconds no further run is started; those in progress are
    finished. `function` is what a run is: `mmes.lab.experiments.execute.perform`.
    """
    begin = time.monotonic()
    count = workers if workers is not None else usable_cores()
    if count < 1:
        raise ValueError(f"workers must be at least 1, not {count}")
    everything = unique(runs)
    stored = store.finished()
    waiting = deque(run for run in everything if run.key not in stored)
    skipped = len(everything) - len(waiting)
    deadline = begin + (time_limit if time_limit is not None else float("inf"))
    with progress_display(len(everything), skipped, show) as display, _single_threads():
        session = Session(store, function, display, deadline)
        session.go(waiting, min(count, max(len(waiting), 1)))
    return Report(session.finished, skipped, session.failed, len(waiting), time.monotonic() - begin)


def shard(runs: Iterable[Trial], part: int, parts: int) -> tuple[Trial, ...]:
    """Return every parts-th run beginning with number `part` (from 1), for several machines."""
    if not 1 <= part <= parts:
        raise ValueError(f"part must be between 1 and {parts}, not {part}")
    return unique(runs)[part - 1 :: parts]
