"""The constants that CMA-ES and sep-CMA-ES share (Hansen 2016), and their step-size rule."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mmes.strategies.parts.step_size import CSA
from mmes.strategies.shell.protocol import Vector


@dataclass(frozen=True)
class Rates:
    """The constants by their symbols.

    =======  ==============  =======================================================
    field    paper           meaning
    =======  ==============  =======================================================
    c_s      c_sigma         rate of the path of the step-size rule
    d_s      d_sigma         its damping
    c_c      c_c             rate of the evolution path
    c_1      c_1             rate of the rank-one update of the covariance
    c_mu     c_mu            rate of the rank-mu update
    chi_n    E|N(0, I)|      expected length of a standard normal vector
    =======  ==============  =======================================================
    """

    n: int
    mu_eff: float
    c_s: float
    d_s: float
    c_c: float
    c_1: float
    c_mu: float
    chi_n: float

    @classmethod
    def full(cls, n: int, mu_eff: float, damping: float) -> Rates:
        """Return the rates for a full covariance matrix; `damping` multiplies the damping."""
        c_s = (mu_eff + 2) / (n + mu_eff + 5)
        c_1 = 2 / ((n + 1.3) ** 2 + mu_eff)
        return cls(
            n=n,
            mu_eff=mu_eff,
            c_s=c_s,
            d_s=damping * (1 + 2 * max(0.0, math.sqrt((mu_eff - 1) / (n + 1)) - 1) + c_s),
            c_c=(4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n),
            c_1=c_1,
            c_mu=min(1 - c_1, 2 * (mu_eff - 2 + 1 / mu_eff) / ((n + 2) ** 2 + mu_eff)),
            chi_n=math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2)),
        )

    @classmethod
    def separable(cls, n: int, mu_eff: float, damping: float) -> Rates:
        """Return the rates for a diagonal one: c_1 and c_mu are (n + 1.5) / 3 times as large.

        N.B. as in the diagonal mode of the reference program; with the rates of the 2008 paper,
        Different Powers needs 9 % more evaluations than the published figures.
        """
        full = cls.full(n, mu_eff, damping)
        c_1 = min(1.0, full.c_1 * (n + 1.5) / 3)
        c_mu = min(1 - c_1, full.c_mu * (n + 1.5) / 3)
        return cls(n, mu_eff, full.c_s, full.d_s, full.c_c, c_1, c_mu, full.chi_n)

    def rule(self) -> CSA:
        """Return sigma <- sigma exp((c_s / d_s) (|p_s| / chi_n - 1))."""
        return CSA(self.mu_eff, self.c_s, self.d_s, self.chi_n)

    def path_moves(self, squared_path_length: float, updates: int) -> bool:
        """Return h: whether p_s is short enough to add the step to p_c, after this many updates.

        |p_s| / sqrt(1 - (1 - c_s)^(2 g)) < (1.4 + 2 / (n + 1)) chi_n; a long p_s says that sigma
        lags behind.
        """
        settled = 1 - (1 - self.c_s) ** (2 * updates)
        return math.sqrt(squared_path_length / settled) < (1.4 + 2 / (self.n + 1)) * self.chi_n

    def covariance_decay(self, moves: bool) -> float:
        """Return the factor of the old covariance, 1 - c_1 - c_mu + (1 - h) c_1 c_c (2 - c_c)."""
        return 1 - self.c_1 - self.c_mu + (not moves) * self.c_1 * self.c_c * (2 - self.c_c)

    def path_gain(self, moves: bool) -> float:
        """Return h sqrt(c_c (2 - c_c) mu_eff)."""
        return moves * math.sqrt(self.c_c * (2 - self.c_c) * self.mu_eff)

    def negative_weights(self, size: int) -> Vector:
        """Return |w_(mu+1)| .. |w_lambda|, the weights of the worse half in active CMA-ES.

        They are proportional to ln k - ln((lambda + 1) / 2). Their sum is the least of
        1 + c_1 / c_mu (old variance neither fades nor grows by them alone),
        1 + 2 mu_eff^- / (mu_eff + 2), and (1 - c_1 - c_mu) / (n c_mu) (C stays positive definite).
        """
        middle, ranks = math.log((size + 1) / 2), range(size // 2 + 1, size + 1)
        raw = np.array([math.log(k) - middle for k in ranks])
        total, squares = math.fsum(raw), math.fsum(raw * raw)
        if total == 0.0 or self.c_mu == 0.0:  # of two or three candidates
            return np.zeros(raw.size)
        limits = (
            1 + self.c_1 / self.c_mu,
            1 + 2 * (total**2 / squares) / (self.mu_eff + 2),
            (1 - self.c_1 - self.c_mu) / (self.n * self.c_mu),
        )
        return raw * (min(limits) / total)
