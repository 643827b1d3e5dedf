"""Progress on the screen: one live line with rich on a terminal, plain lines everywhere else."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from mmes.run.observing.progress import Progress

_LIVE_SECONDS = 0.1
_PLAIN_SECONDS = 5.0


class Display:
    """Shows the progress of a run on stderr; used as a callback.

    `last_line` asks for a last line that says why the run ended.
    """

    def __init__(self, last_line: bool = True):
        self._last_line = last_line
        self._shown_at = 0.0
        self._began_with: int | None = None
        self._live: Any = None

    def __call__(self, progress: Progress) -> None:
        """Show a generation, unless one was shown very recently."""
        if self._began_with is None:
            self._begin(progress)
        if progress.final:
            self.close()
            if self._last_line:
                self._say(f"{self.line(progress)}  {progress.reason}")
            return
        now = time.monotonic()
        if now - self._shown_at < (_PLAIN_SECONDS if self._live is None else _LIVE_SECONDS):
            return
        self._shown_at = now
        line = self.line(progress)
        if self._live is None:
            self._say(line)
        else:
            self._live.update(line, refresh=True)

    def close(self) -> None:
        """Clear the live line."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()

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
        if progress.validation is not None:
            parts.insert(2, f"validation {progress.validation:.6g}")
        left = []
        if budget is not None and rate > 0:
            left.append((budget - progress.evaluations) / rate)
        if progress.time_limit is not None:
            left.append(max(progress.time_limit - progress.elapsed, 0))
        if left and not progress.final:
            parts.append(f"at most {duration(min(left))} left")
        if progress.start:
            parts.append(f"start {progress.start + 1}")
        return "  ".join(parts)

    def _begin(self, progress: Progress) -> None:
        self._began_with = progress.evaluations  # a resumed run does not begin at zero
        self._shown_at = time.monotonic()
        self._say(f"strategy: {progress.strategy}")
        if progress.evaluator and not progress.final:
            self._say(progress.evaluator)
        if sys.stderr.isatty() and not progress.final:
            try:
                from rich.console import Console
                from rich.live import Live
            except ImportError:
                return
            self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self._live.start()

    @staticmethod
    def _say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Return a time in readable form: 0.4 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    if not math.isfinite(seconds):
        return "?"
    if seconds < 100:
        return f"{seconds:.1f} s"
    for unit, size, smaller, part in (("min", 60, "s", 1), ("h", 3600, "min", 60)):
        if seconds < 100 * size:
            return f"{seconds // size:.0f} {unit} {seconds % size // part:.0f} {smaller}"
    return f"{seconds // 86400:.0f} d {seconds % 86400 // 3600:.0f} h"
