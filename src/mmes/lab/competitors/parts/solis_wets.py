"""The local search of Solis and Wets (1981), as MA-SW-Chains and MOS use it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mmes.base.randomness import Stream
from mmes.lab.competitors.parts.draws import Vector
from mmes.lab.competitors.parts.setting import Asking, Incumbent, Setting

SMALLEST_STEP = 1e-100
"""Steps shrink no further: they move no coordinate any more, and denormal numbers are slow."""


@dataclass(frozen=True)
class SolisWetsRules:
    """When the step changes, and by how much."""

    successes: int = 5
    failures: int = 3
    growth: float = 2.0
    shrinkage: float = 0.5


@dataclass
class SolisWetsState:
    """The state of a chain of local searches: step, bias, and both counters."""

    step: float
    bias: Vector
    successes: int = 0
    failures: int = 0

    def note(self, success: bool, rules: SolisWetsRules) -> None:
        """Count a success or a failure; several in a row change the step."""
        if success:
            self.successes, self.failures = self.successes + 1, 0
            if self.successes >= rules.successes:
                self.step, self.successes = self.step * rules.growth, 0
        else:
            self.successes, self.failures = 0, self.failures + 1
            if self.failures >= rules.failures:
                self.step = max(self.step * rules.shrinkage, SMALLEST_STEP)
                self.failures = 0


@dataclass
class Gains:
    """What a local search achieved: evaluations, improvements, and their relative sizes."""

    evaluations: int = 0
    improvements: int = 0
    relative: float = 0.0

    def note(self, old: float, new: float) -> None:
        """Count one evaluation that brought the value from `old` to `new`, if that is better."""
        self.evaluations += 1
        if new < old:
            self.improvements += 1
            self.relative += relative_gain(old, new)


def relative_gain(old: float, new: float) -> float:
    """Return (old - new) / abs(old), or 0 if that is not a gain."""
    return (old - new) / abs(old) if new < old and old != 0.0 else 0.0


def solis_wets(
    setting: Setting,
    point: Incumbent,
    state: SolisWetsState,
    rules: SolisWetsRules,
    evaluations: int,
    steps: Iterator[int],
) -> Asking[Gains]:
    """Improve a point in place with this many evaluations; the state changes in place too."""
    gains, n = Gains(), setting.n
    lower, upper, draws = setting.lower, setting.upper, setting.draws
    while gains.evaluations < evaluations:
        move = draws.normals(n, Stream.LOCAL_STEP, next(steps))
        move *= state.step
        move += state.bias
        for sign in (1.0, -1.0):
            trial = point.x + move if sign > 0.0 else point.x - move
            np.maximum(trial, lower, out=trial)
            np.minimum(trial, upper, out=trial)
            value = float((yield trial[None, :])[0])
            gains.note(point.value, value)
            if value < point.value:
                point.x, point.value = trial, value
                if sign > 0.0:
                    state.bias = 0.2 * state.bias + 0.4 * move
                else:
                    state.bias = state.bias - 0.4 * move
                state.note(True, rules)
                break
            if gains.evaluations == evaluations:
                return gains
        else:
            state.bias = 0.5 * state.bias
            state.note(False, rules)
    return gains
