"""The five step-size rules, interchangeable: CSA, PSR, RSR, GSR and PTA.

A rule is a frozen record of settings. Its state between generations is a `StepState`, its input
from a generation an `Evidence`, and its result the factor of the mutation strength sigma.

In the formulas f_(1) <= .. <= f_(lambda) are the sorted values of this generation, F_(k) those of
the one before, w_k the recombination weights, and s the smoothed statistic. A tie between
generations is not a success for the rank rules (PSR, RSR, GSR), and half of one for the paired
test. On a plateau, where ties decide within a generation, no rule applies: the shell increases
sigma.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mmes.kernels import Handle, Kernel
from mmes.kernels.short import success_share
from mmes.strategies.parts.recombination import bounded_sigma
from mmes.strategies.shell.protocol import Vector


def _none() -> Vector:
    return np.empty(0)


def growth(exponent: float) -> float:
    """Return the factor of sigma; if it overflows, one that ends the run."""
    return math.exp(min(exponent, 700.0))


@dataclass
class StepState:
    """What a rule carries from one generation to the next."""

    average: float = 0.0  # s: smoothed statistic of the success rules
    # F_(1..l): sorted values of the generation before; empty before the first
    previous: Vector = field(default_factory=_none)
    # p_s: path of the cumulative rule, zero at the start; None for the others
    path: Handle | None = None

    def start(self, value: float, population_size: int) -> None:
        """Use f(start point) as the values of the generation before the first."""
        self.previous = np.full(population_size, value)


class Evidence(NamedTuple):
    """What a rule may learn from: the sorted values, and the parents' mean noise <z>_w if asked."""

    values: Vector
    noise_mean: Callable[[], Handle] | None = None
    kernel: Kernel | None = None


class Stepping(Protocol):
    """A state whose sigma a rule adapts."""

    sigma: float
    step: StepState


def adapt_sigma(state: Stepping, rule: StepSizeRule, evidence: Evidence) -> None:
    """Let a rule take in a generation; sigma stays where it can be computed with."""
    state.sigma = bounded_sigma(state.sigma * rule.growth(state.step, evidence))


class StepSizeRule(Protocol):
    """A rule that adapts the mutation strength."""

    def growth(self, state: StepState, evidence: Evidence) -> float:
        """Process a generation and return the factor of sigma."""
        ...


@dataclass(frozen=True)
class CSA:
    """Cumulative step-size adaptation: the path of the selected noise against its random length."""

    mu_eff: float
    c: float  # c_s, the rate of the path
    damping: float = 1.0  # d
    # chi_n for the rule of CMA-ES, (c/d) (|p| / chi_n - 1); None for that of LM-MA-ES, (c/d)
    # (|p|^2 / n - 1)
    expected_length: float | None = None

    def growth(self, state: StepState, evidence: Evidence) -> float:
        """See `StepSizeRule.growth`."""
        kernel, path = evidence.kernel, state.path
        if kernel is None or evidence.noise_mean is None or path is None:
            raise TypeError("the cumulative rule needs the noise, a kernel and a path")
        # p_s <- (1 - c) p_s + sqrt(c (2 - c) mu_eff) <z>_w.
        gain = math.sqrt(self.c * (2 - self.c) * self.mu_eff)
        kernel.blend(path, 1 - self.c, gain, evidence.noise_mean())
        square = kernel.dot(path, path)
        excess = (
            square / path.shape[0] - 1
            if self.expected_length is None
            else math.sqrt(square) / self.expected_length - 1
        )
        # N.B. the limit 1 is that of CMA-ES; without it few variables and many candidates could
        # overflow LM-MA-ES.
        return math.exp(min(1.0, self.c / self.damping * excess))


@dataclass(frozen=True)
class PSR:
    """Population success rule (LM-CMA): by how much the generation outranks the one before."""

    damping: float = 1.0
    c: float = 0.3
    target: float = 0.25  # z*

    def growth(self, state: StepState, evidence: Evidence) -> float:
        """See `StepSizeRule.growth`."""

        def statistic(f: Vector, previous: Vector) -> float:
            # q = (sum of the previous ranks - sum of the current ranks) / lambda^2, in [-1, 1].
            now, before = joint_ranks(f, previous)
            return float(before.sum() - now.sum()) / f.size**2

        return _smoothed_growth(
            state, evidence.values, statistic, self.c, self.target, self.damping
        )


@dataclass(frozen=True)
class RSR:
    """Rank-based success rule (R1-ES, Rm-ES): the same of the parents alone, weighted."""

    weights: Vector
    damping: float = 1.0
    c: float = 0.3
    target: float = 0.3  # q*

    def growth(self, state: StepState, evidence: Evidence) -> float:
        """See `StepSizeRule.growth`."""

        def statistic(f: Vector, previous: Vector) -> float:
            # q = (1/mu) sum_k w_k (R_k - r_k), in [-1, 1].
            mu = self.weights.size
            now, before = joint_ranks(f[:mu], previous[:mu])
            return math.fsum(self.weights * (before - now)) / mu

        return _smoothed_growth(
            state, evidence.values, statistic, self.c, self.target, self.damping
        )


@dataclass(frozen=True)
class GSR:
    """Generalised one-fifth success rule (SDA-ES): a Mann-Whitney statistic as a probability."""

    damping: float = 1.0
    c: float = 0.3
    significance: float = 0.05  # alpha

    def growth(self, state: StepState, evidence: Evidence) -> float:
        """See `StepSizeRule.growth`."""
        previous, state.previous = state.previous, evidence.values
        if previous.size == 0:
            return 1.0
        state.average = (1 - self.c) * state.average + math.sqrt(
            self.c * (2 - self.c)
        ) * self.statistic(evidence.values, previous)
        # sigma <- sigma exp((Phi(s) / (1 - alpha) - 1) / d).
        surety = normal_cdf(state.average)
        return growth((surety / (1 - self.significance) - 1) / self.damping)

    @staticmethod
    def statistic(f: Vector, previous: Vector) -> float:
        """Return Z = (U - lambda^2 / 2) / sqrt(lambda^2 (2 lambda + 1) / 12).

        Its mean is 0 and its variance 1 if both generations are alike.
        """
        size = f.size
        _, before = joint_ranks(f, previous)
        u = float(before.sum()) - size * (size + 1) / 2
        return (u - size**2 / 2) / math.sqrt(size**2 * (2 * size + 1) / 12)


@dataclass(frozen=True)
class PTA:
    """Paired test adaptation (MMES): the weighted fraction of ranks at which values fell."""

    weights: Vector
    mu_eff: float
    damping: float = 1.0
    c: float = 0.3
    significance: float = 0.05  # alpha_z

    def growth(self, state: StepState, evidence: Evidence) -> float:
        """See `StepSizeRule.growth`."""
        previous, state.previous = state.previous, evidence.values
        if previous.size == 0:
            return 1.0
        mu = self.weights.size
        share = success_share(evidence.values[:mu], previous[:mu], self.weights)
        state.average = smoothed(state.average, share, self.mu_eff, self.c)
        return paired_growth(state.average, self.significance, self.damping)


def smoothed(success: float, share: float, mu_eff: float, c_s: float) -> float:
    """Return the new W of the paired test.

    2 L - 1 has mean 0 and variance 1 / mu_eff when both generations are alike, so W is near
    standard normal then. N.B. the text says that the factor 1 / sqrt(sum w^2) is replaced by
    mu_eff; it equals sqrt(mu_eff).
    """
    return (1 - c_s) * success + math.sqrt(c_s * (2 - c_s) * mu_eff) * (2 * share - 1)


def paired_growth(success: float, significance: float, damping: float) -> float:
    """Return the factor of sigma by the paired test, exp((Phi(W) - 1 + alpha_z) / d_sigma)."""
    return growth((normal_cdf(success) - 1 + significance) / damping)


def normal_cdf(x: float) -> float:
    """Return Phi(x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


def joint_ranks(f: Vector, previous: Vector) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ranks 1, 2, .. of two generations in their union; of equals the previous first."""
    order = np.argsort(np.concatenate((previous, f)), kind="stable")
    ranks = np.empty(order.size, dtype=np.int64)
    ranks[order] = np.arange(1, order.size + 1)
    return ranks[previous.size :], ranks[: previous.size]


def _smoothed_growth(
    state: StepState,
    values: Vector,
    statistic: Callable[[Vector, Vector], float],
    c: float,
    target: float,
    damping: float,
) -> float:
    """Return exp(s / d) with s <- (1 - c) s + c (q - target); 1 without a previous generation."""
    previous, state.previous = state.previous, values
    if previous.size == 0:
        return 1.0
    state.average = (1 - c) * state.average + c * (statistic(values, previous) - target)
    return growth(state.average / damping)
