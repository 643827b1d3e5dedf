"""Why a search should end: what the shell watches for beside the target and the budget."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, SupportsFloat

from mmes.base.arrays import Arrays
from mmes.base.reasons import StopReason
from mmes.base.saved_numbers import checked_scalar
from mmes.kernels import Kernel
from mmes.spaces.boxes import Rounded
from mmes.strategies.parts.recombination import LARGEST_SIGMA, SMALLEST_SIGMA
from mmes.strategies.shell.collapse import Collapse
from mmes.strategies.shell.protocol import Search
from mmes.strategies.shell.standstill import LONG, NothingBetter, ValueHistory

FAILURES_IN_A_ROW = 10
# Generations between two looks at vectors.
LOOK_EVERY = 16
# Rate at which a generation moves the share of candidates that failed lately.
_FAILURE_RATE = 0.05
# Where more candidates failed lately, the search was too blind to say that it converged.
MOST_FAILURES = 0.3
# Above this share of the largest sigma that a plateau may lead to, equal values are a plateau.
_NEAR_WIDEST = 0.5
# Equal values at points closer than this share of the first steps do not tell a plateau from an
# optimum. To have points farther apart sigma may grow beyond its limit, by the second at most.
_SHORT, _FARTHER = 1e-2, 1e6
# What remains per generation of how far apart points with equal values were.
_REMEMBERED = 0.97
# Steps of this share of the largest variable are far below its resolution, and still above that of
# one that is smaller by 1e-8. Nobody looks before sigma has fallen by the second.
_RESOLUTION, _NEAR_RESOLUTION = 1e-24, 1e-18
# With integers: where sigma is above this share of the first, the search has not converged.
_STILL_LONG = 1e-3
# Short steps are counted until one is this many times as long as the shortest: constraints make
# their length go up and down.
_ALMOST = 10.0
# A search of integers that has converged comes back to the best value in this share of generations.
_CAME_BACK = 0.9


class StopRules:
    """Takes note of the generations and tells why the search should end, if it should.

    `windows` are the generations for which values may stand still, where no option says otherwise,
    and those in which the search learns; ten times the longer one is the long window. The mean has
    run away where an entry is larger than `farthest`: on an unbounded objective it may do so along
    its path before sigma grows. `spread` is the largest scale of a variable at the start. The steps
    of integers (`rounded`) never become short: there a search has converged when those of the other
    variables were short in as many generations as the window has.
    """

    def __init__(
        self,
        options: dict[str, Any],
        sigma0: float,
        windows: tuple[int, int],
        farthest: float,
        spread: float,
        collapse: Collapse | None = None,
        rounded: Rounded | None = None,
    ):
        self.collapse = collapse
        self._lowest_sigma = max(options["sigma_min"] or 0.0, SMALLEST_SIGMA)
        self._highest_sigma = min(options["sigma_max"] or math.inf, LARGEST_SIGMA)
        self._largest_step = math.inf if options["sigma_max"] else 1e20 * sigma0
        self._smallest_step = options["xtol"] * sigma0
        self.nothing_below = _NEAR_RESOLUTION * sigma0
        self._farthest, self._sigma0, self._first_spread = farthest, sigma0, spread
        self._integers, self._only_integers = rounded is not None, bool(rounded and rounded.alone)
        self._window, self._short_steps = windows[0], 0
        self._nothing_better = NothingBetter(rounded.count if rounded else 0, _CAME_BACK)
        self._failures_in_a_row = 0
        self._failing = 0.0
        self._unbounded = False
        self._equal_over = 0.0  # how far apart points with equal values lay: 1 is far
        window, learning = windows
        longest = 0 if options["stagnation_window"] else LONG * learning
        window = options["stagnation_window"] or window
        self._standstill = (
            None
            if window == "off"
            else ValueHistory(window, options["ftol"], options["stagnation_tolerance"], longest)
        )

    def observe(
        self,
        generation: int,
        best: float,
        extremes: tuple[float, float],
        failed: float,
        short: float = math.inf,
    ) -> None:
        """Take note of the generation that ends, with its number from 1 and the best value so far.

        `extremes` are its lowest and highest value, failures left out; inf and inf where all
        failed. `failed` is the share of its candidates that failed. With integers, `short` is the
        length of the steps of the other variables, 1 where they are as short as they may be.
        """
        self._failures_in_a_row = self._failures_in_a_row + 1 if failed == 1.0 else 0
        self._failing += _FAILURE_RATE * (failed - self._failing)
        self._unbounded = self._unbounded or extremes[0] == -math.inf
        if short > _ALMOST:
            self._short_steps = 0
        self._short_steps += short <= 1.0
        if self._standstill is not None:
            self._standstill.observe(generation, best, *extremes)
            if self._only_integers:
                self._nothing_better.see(best, extremes[0], self._standstill.same)

    def reasons(
        self, search: Search, kernel: Kernel, generation: int, widest: float = math.inf
    ) -> Iterator[StopReason]:
        """Give all reasons that hold now, the most telling first.

        `widest` is the mutation strength beyond which a plateau does not lead.
        """
        still, sigma = self._standstill, search.sigma
        # A look now and then is enough, and costs nothing then: per generation steps grow by less
        # than half, and float32 directions overflow only at 1e38.
        look = generation % LOOK_EVERY == 0
        if self._unbounded:
            yield StopReason.UNBOUNDED
        if self._failures_in_a_row >= FAILURES_IN_A_ROW:
            yield StopReason.ALL_FAILED
        if still is not None and still.flat:
            yield StopReason.FLAT
        if still is not None and not still.flat and self._nothing_better.over:
            yield self._trusted(StopReason.CONVERGED_F)
        if still is not None and still.converged:
            lost = self._doubted or self._on_plateau(still, sigma, widest)
            yield StopReason.STAGNATED if lost else self._trusted(StopReason.CONVERGED_F)
        # N.B. not sigma alone: it may drift up while the scales of the variables shrink as much.
        step = sigma * search.spread() if look else math.nan
        if self._integers:
            if self._short_steps >= self._window:
                yield self._trusted(StopReason.CONVERGED_X)
        elif step < self._smallest_step * self._first_spread:
            lost = self._doubted
            yield StopReason.STAGNATED if lost else self._trusted(StopReason.CONVERGED_X)
        if not sigma > self._lowest_sigma:
            yield StopReason.SIGMA_TOO_SMALL
        ran_away = look and not kernel.largest(search.mean) <= self._farthest
        ran_away = ran_away or step > self._largest_step * self._first_spread
        if ran_away or not sigma < self._highest_sigma:
            yield StopReason.SIGMA_TOO_LARGE
        if still is not None and still.stagnated:
            yield StopReason.STAGNATED

    def least_sigma(self, search: Search, kernel: Kernel, generation: int) -> float:
        """Return the mutation strength below which steps say nothing; 0 if nobody looked.

        It is asked where sigma is at most `nothing_below`. Without a stop rule sigma may fall for
        ever. The differences of means are then their rounding, and that divided by sigma is what
        paths and directions are made of: numbers that overflow in the end.
        """
        if generation % LOOK_EVERY:
            return 0.0
        return _RESOLUTION * kernel.largest(search.mean) / search.spread()

    def may_be_plateau(self, sigma: float) -> bool:
        """Return whether equal values, with steps of this length, may be those of a plateau.

        Integers alone make steps of any objective. Beside other variables they are told from a
        plateau by the length of the steps: those of a search that converges are short by then.
        """
        long = sigma > _STILL_LONG * self._sigma0
        return not self._integers or (long and not self._only_integers)

    def longest_on_plateau(self, sigma: float, apart: float, widest: float) -> float:
        """Return up to where a plateau leads sigma, and take note of how wide the plateau is.

        `apart` is the distance between two candidates with the same value, and `widest` the usual
        limit.
        """
        if self._integers:
            return widest
        if sigma > _NEAR_WIDEST * widest:
            share = min(apart / (_SHORT * self._sigma0 * self._first_spread), 1.0)
            self._equal_over = max(share, _REMEMBERED * self._equal_over)
        return widest if self._equal_over == 1.0 else _FARTHER * widest

    def _on_plateau(self, still: ValueHistory, sigma: float, widest: float) -> bool:
        """Return whether equal values are those of a plateau, rather than of a converged search.

        Where the ranking tells nothing sigma grows. Equal values of a search that converged differ
        again soon, by little; those of a plateau do not, or by much. Where integers change, values
        differ by much in any case.
        """
        if self._integers:
            return self.may_be_plateau(sigma)
        if still.on_steps or sigma <= _NEAR_WIDEST * widest:
            return still.on_steps
        # Not sigma alone: the scales of few variables may shrink as fast as it grows, by what is
        # selected near an optimum. The points are then as close to each other as before.
        return self._equal_over > _NEAR_WIDEST

    @property
    def _doubted(self) -> bool:
        """Whether steps may have become short at a kink rather than at an optimum."""
        return self.collapse is not None and (self.collapse.collapsed or self.collapse.doubted)

    def _trusted(self, reason: StopReason) -> StopReason:
        """Return a reason that means success, or stagnation where too many candidates failed.

        Steps shrink also where failures hide the progress.
        """
        return reason if self._failing <= MOST_FAILURES else StopReason.STAGNATED

    def first_sigma(self, search: Search) -> float:
        """Return the mutation strength with which the largest step is what it was at the start."""
        return self._sigma0 * self._first_spread / search.spread()

    def begin_anew(self, step: float) -> None:
        """Reset the tests on values and steps: the search continues with these steps."""
        self._short_steps, self._equal_over = 0, 0.0
        self._nothing_better = self._nothing_better.anew()
        if self.collapse is not None:
            self.collapse = self.collapse.anew(step)
        if self._standstill is not None:
            self._standstill = self._standstill.anew()

    def entries(self) -> dict[str, Any]:
        """Return the numbers of the state."""
        return {
            "failures_in_a_row": self._failures_in_a_row,
            "failing": self._failing,
            "unbounded": self._unbounded,
            "short_steps": self._short_steps,
            "equal_over": self._equal_over,
            "nothing_better": self._nothing_better.entries(),
            "farthest": self._farthest,
            "first_spread": self._first_spread,
        }

    def arrays(self) -> Arrays:
        """Return the arrays of the state."""
        still, collapse = self._standstill, self.collapse
        return ({} if still is None else still.arrays()) | (
            {} if collapse is None else collapse.arrays()
        )

    def restore(self, generation: int, state: dict[str, Any]) -> None:
        """Take over what `entries` and `arrays` returned."""
        self._failures_in_a_row = checked_scalar("failures", state["failures_in_a_row"], 0)
        # Older states have no word for it.
        self._failing = checked_scalar("failing", state.get("failing", 0.0), 0.0, 0.0, 1.0)
        self._unbounded = state["unbounded"] is True
        self._short_steps = checked_scalar("short_steps", state.get("short_steps", 0), 0)
        self._nothing_better.restore(state.get("nothing_better"))
        # Of older states: a plateau, if sigma is that large.
        self._equal_over = checked_scalar("equal_over", state.get("equal_over", 1.0), 0.0, 0.0, 1.0)
        self._farthest = checked_scalar("farthest", state["farthest"], 0.0)
        self._first_spread = checked_scalar("first_spread", state["first_spread"], 0.0)
        if self._standstill is not None:
            self._standstill.restore(generation, state["arrays"])
        if self.collapse is not None:
            self.collapse.restore(state["arrays"])


def checked_target(target: SupportsFloat) -> float:
    """Return a target as a number, -inf for one that is infinite: no value reaches it."""
    try:
        number = float(target)
    except (TypeError, ValueError) as error:
        raise type(error)(f"target must be a number, not {target!r}") from None
    if math.isnan(number):
        raise ValueError("target must be a number, not NaN, which no value reaches")
    return number if math.isfinite(number) else -math.inf
