"""MMES in a hundred lines: Algorithm 1 of the paper in plain numpy, to be read from top to bottom.

`mmes.MMES` is the same algorithm, made fast, and draws the same candidates up to rounding; the
tests hold the two against each other. The random numbers are those of the library, addressed by
(seed, stream, generation, candidate). N.B. marks what the pseudo-code leaves open or has otherwise;
docs/algorithm.md says why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes.base.randomness import Stream, normals, uniforms


class PlainMMES:
    """MMES with `ask` and `tell`: no bounds, no options beyond the sizes, nothing saved.

    The start is a mean `x0` and a mutation strength `sigma0`; without a population size lambda or
    an archive size m, the paper's formula is taken.

    >>> es = PlainMMES(np.ones(20), 0.5, seed=1)
    >>> for _ in range(300):
    ...     es.tell([float(x @ x) for x in es.ask()])
    >>> bool(es.mean @ es.mean < 1e-6)
    True
    """

    def __init__(
        self,
        x0: ArrayLike,
        sigma0: float,
        seed: int,
        *,
        population_size: int | None = None,
        archive_size: int | None = None,
    ):
        # Input: the start. Set p = 0, q_1 .. q_m = 0, W = 0, g = 0.
        self.mean, self.sigma, self.seed = np.array(x0, dtype=float), sigma0, seed
        self.n = n = self.mean.size
        self.m = archive_size or 2 * math.ceil(math.sqrt(n))
        self.path, self.success, self.generation = np.zeros(n), 0.0, 0
        self.q: list[NDArray[np.float64]] = []  # the oldest first; those that lack are zero
        self.t: list[int] = []  # the generation of each
        self.previous: NDArray[np.float64] | None = None  # values of the generation before, sorted

        # Parameters: the table of defaults.
        self.lam = population_size or 4 + math.floor(3 * math.log(n))
        self.mu = self.lam // 2
        raw = math.log(self.mu + 0.5) - np.log(np.arange(1, self.mu + 1))
        self.w = raw / raw.sum()
        self.mu_eff = 1 / (self.w**2).sum()
        self.l, self.c_a, self.c_c = 4, min(4 / n, 0.5), 0.4 / math.sqrt(n)  # N.B. 4/n for n > 4
        self.T = math.ceil(1 / self.c_c)
        self.c_s, self.d_s, self.alpha_z = 0.3, 1.0, 0.05
        self.gamma = 1 - (1 - self.c_a) ** self.m
        # alpha: the probability of a direction by its age, 0 the newest.
        self.alpha = self.c_a * (1 - self.c_a) ** np.arange(self.m) / self.gamma

    def mixed_step(self, i: int) -> NDArray[np.float64]:
        """Return z_i ~ P_m, by fast mixture sampling."""
        address = (self.generation, i)
        # i_1 .. i_l ~ alpha, independent, with replacement.
        u = uniforms(self.l, self.seed, Stream.MIXTURE_INDEX, *address)
        ages = np.searchsorted(np.cumsum(self.alpha)[:-1], u, side="right")
        # z_0 ~ N(0, I_n); z_1 .. z_l ~ N(0, 1).
        z_0 = normals(self.n, self.seed, Stream.ISOTROPIC, *address).astype(float)
        z = normals(self.l, self.seed, Stream.MIXTURE_FACTOR, *address).astype(float)
        # z = sqrt(1 - gamma) z_0 + sqrt(gamma / l) sum_j z_j q_{i_j}.
        stored = [(z[j], self.q[-1 - a]) for j, a in enumerate(ages) if a < len(self.q)]
        directed = sum(factor * q for factor, q in stored)
        return math.sqrt(1 - self.gamma) * z_0 + math.sqrt(self.gamma / self.l) * directed

    def ask(self) -> NDArray[np.float64]:
        """Return the candidates of this generation, one per row; at first with x0 before them."""
        # For i = 1 .. lambda: z_i ~ P_m, x_i = m + sigma z_i.
        # N.B. half of them are mirror images, m - sigma z_i: the published tables need it.
        draws = math.ceil(self.lam / 2)
        z = np.array([self.mixed_step(i) for i in range(draws)])
        self.x = np.vstack([self.mean + self.sigma * z, self.mean - self.sigma * z])[: self.lam]
        return self.x if self.previous is not None else np.vstack([self.mean, self.x])

    def tell(self, values: Sequence[float] | NDArray[np.float64]) -> None:
        """Take the objective's values at the points of `ask`, in their order."""
        # Evaluate f(x_1) .. f(x_lambda). N.B. NaN counts as infinity.
        f = np.where(np.isnan(values), np.inf, values)
        if self.previous is None:  # f(m_0) stands for the generation before the first
            self.previous, f = np.full(self.lam, f[0]), f[1:]
        # Sort, so that f(x_{1:lambda}) <= .. <= f(x_{lambda:lambda}).
        order = np.argsort(f, kind="stable")
        f, best = f[order], self.x[order[: self.mu]]
        # Mean: m' = sum_{i <= mu} w_i x_{i:lambda}.
        step = self.w @ best - self.mean
        self.mean = self.mean + step
        # Path: p <- (1 - c_c) p + sqrt(c_c (2 - c_c) mu_eff) (m' - m) / sigma.
        gain = math.sqrt(self.c_c * (2 - self.c_c) * self.mu_eff)
        self.path = (1 - self.c_c) * self.path + gain * step / self.sigma
        # Archive, if it is full: k = argmin (t_k - t_{k-1}) makes room, or the oldest if all gaps
        # are above T. N.B. at T it is still k.
        if len(self.q) == self.m:
            k = min(range(1, self.m), key=lambda k: self.t[k] - self.t[k - 1], default=0)
            drop = 0 if self.t[k] - self.t[k - 1] > self.T else k
            del self.q[drop], self.t[drop]
        # p becomes the newest direction, in single precision.
        self.q.append(self.path.astype(np.float32).astype(float))
        self.t.append(self.generation)
        # Success: L = sum_{i <= mu} w_i [f(x_{i:lambda}) < that of the generation before].
        # N.B. a tie counts one half.
        now, before = f[: self.mu], self.previous[: self.mu]
        share = self.w @ np.where(now == before, 0.5, now < before)
        # Average: W <- (1 - c_s) W + sqrt(c_s (2 - c_s) mu_eff) (2 L - 1).
        gain = math.sqrt(self.c_s * (2 - self.c_s) * self.mu_eff)
        self.success = (1 - self.c_s) * self.success + gain * (2 * share - 1)
        # Strength: sigma <- sigma exp((Phi(W) - 1 + alpha_z) / d_s). N.B. with the new W.
        phi = 0.5 * (1 + math.erf(self.success / math.sqrt(2)))
        self.sigma *= math.exp((phi - 1 + self.alpha_z) / self.d_s)
        # g <- g + 1.
        self.previous, self.generation = f, self.generation + 1
