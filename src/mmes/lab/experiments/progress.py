"""Progress of many runs: a live bar where rich and a terminal are present, lines otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mmes.lab.experiments.plan import Trial

LINE_SECONDS = 15.0
"""Without a terminal one line is printed this often at most."""


class TrialDisplay:
    """What the runner tells about its work; this base shows nothing."""

    def begun(self, run: Trial) -> None:
        """Note that a run has been handed to a worker."""

    def done(self, run: Trial, failure: str | None) -> None:
        """Note that a run is over, and why it failed if it did."""


class Lines(TrialDisplay):
    """Prints a line now and then, and one for every failure."""

    def __init__(self, total: int, skipped: int) -> None:
        self.total, self.skipped, self.count = total, skipped, skipped
        self.begin = self.last = time.monotonic()
        if skipped:
            print(f"{skipped} of {total} runs are already stored", flush=True)

    def done(self, run: Trial, failure: str | None) -> None:
        """Count the run; print at intervals and at the end."""
        self.count += 1
        if failure is not None:
            print(f"failed: {run}: {failure}", file=sys.stderr, flush=True)
        now = time.monotonic()
        if self.count == self.total or now - self.last >= LINE_SECONDS:
            self.last = now
            each = (now - self.begin) / (self.count - self.skipped)
            left = each * (self.total - self.count)
            rest = f"; about {left / 60:.0f} min left" if left >= 60.0 else ""
            print(f"[{self.count}/{self.total}] {run}{rest}", flush=True)


class Bar(TrialDisplay):
    """A live bar with the time left and the runs in progress."""

    def __init__(self, bar: Any, task: Any) -> None:
        self.bar, self.task = bar, task
        self.active: list[str] = []

    def begun(self, run: Trial) -> None:
        """Show the run among those in progress."""
        self.active.append(str(run))
        self._show()

    def done(self, run: Trial, failure: str | None) -> None:
        """Advance the bar."""
        if str(run) in self.active:
            self.active.remove(str(run))
        if failure is not None:
            self.bar.console.print(f"[red]failed[/red]: {run}: {failure}", highlight=False)
        self.bar.advance(self.task)
        self._show()

    def _show(self) -> None:
        self.bar.update(self.task, description="; ".join(self.active)[:70])


@contextmanager
def progress_display(total: int, skipped: int, show: bool = True) -> Iterator[TrialDisplay]:
    """Yield the best display this process can offer."""
    if not show:
        yield TrialDisplay()
        return
    try:
        from rich import progress as rich_progress
    except ModuleNotFoundError:
        rich_progress = None
    if rich_progress is None or not sys.stdout.isatty():
        yield Lines(total, skipped)
        return
    columns = (
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TimeRemainingColumn(),
        rich_progress.TextColumn("{task.description}"),
    )
    with rich_progress.Progress(*columns) as bar:
        yield Bar(bar, bar.add_task("", total=total, completed=skipped))
