"""Progress on the screen: one live line with rich on a terminal, plain lines everywhere else."""

from __future__ import annotations

import sys
import time
from typing import Any

from mmes.cli.output import duration
from mmes.cli.status import say
from mmes.observe import Progress

_LIVE_SECONDS = 0.1
_PLAIN_SECONDS = 10.0


class Display:
    """Shows how a run goes; to be used as a context manager, and called as a callback.

    Parameters
    ----------
    quiet : bool
        Whether to show nothing.
    time_limit : float or None
        The run's time limit, for the time that is left.
    """

    def __init__(self, quiet: bool, time_limit: float | None):
        self._quiet = quiet
        self._time_limit = time_limit
        self._shown_at = time.monotonic()
        self._began_with: int | None = None
        self._live: Any = None

    def __enter__(self) -> Display:
        if not self._quiet and sys.stderr.isatty():
            try:
                from rich.console import Console
                from rich.live import Live
            except ImportError:
                return self
            console = Console(stderr=True)
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*error)
            self._live = None

    def __call__(self, progress: Progress) -> None:
        """Show a generation, unless the last one was shown a moment ago."""
        if self._began_with is None:
            self._began_with = progress.evaluations  # a resumed run does not begin at zero
        now = time.monotonic()
        pause = _PLAIN_SECONDS if self._live is None else _LIVE_SECONDS
        if self._quiet or now - self._shown_at < pause:
            return
        self._shown_at = now
        line = self.line(progress)
        if self._live is None:
            say(line)
        else:
            self._live.update(line, refresh=True)

    def line(self, progress: Progress) -> str:
        """Return evaluations, best value, sigma, speed and time left as one line."""
        done = progress.evaluations - (self._began_with or 0)
        rate = done / progress.elapsed if progress.elapsed > 0 else 0.0
        budget = progress.max_evaluations
        share = "" if budget is None else f" of {budget:,} ({progress.evaluations / budget:.0%})"
        parts = [
            f"{progress.evaluations:,}{share} evaluations",
            f"best {progress.best_value:.6g}",
            f"sigma {progress.sigma:.3g}",
            f"{rate:,.0f}/s",
        ]
        left = []
        if budget is not None and rate > 0:
            left.append((budget - progress.evaluations) / rate)
        if self._time_limit is not None:
            left.append(max(self._time_limit - progress.elapsed, 0))
        if left:
            parts.append(f"at most {duration(min(left))} left")
        if progress.start:
            parts.append(f"start {progress.start + 1}")
        return "  ".join(parts)
