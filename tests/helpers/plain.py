"""A second MMES, written from the specification alone, slow and literal: the oracle."""

from __future__ import annotations

import math

import numpy as np

from mmes.base import randomness
from mmes.base.randomness import Stream


class PlainMMES:
    """One list a vector, one loop a sum; only the random numbers are the library's."""

    def __init__(
        self, x0, sigma0: float, seed: int, population_size: int | None = None, m: int | None = None
    ):
        self.n = n = len(x0)
        self.lam = population_size or 4 + math.floor(3 * math.log(n))
        self.mu = self.lam // 2
        raw = [math.log(self.mu + 0.5) - math.log(i) for i in range(1, self.mu + 1)]
        self.w = [r / sum(raw) for r in raw]
        self.mueff = 1 / sum(w * w for w in self.w)
        self.m = m or 2 * math.ceil(math.sqrt(n))
        self.l, self.ca, self.cc = 4, 4 / n, 0.4 / math.sqrt(n)
        self.T = math.ceil(1 / self.cc)
        self.cs, self.ds, self.alphaz = 0.3, 1.0, 0.05
        self.gamma = 1 - (1 - self.ca) ** self.m
        self.mean, self.sigma, self.p = np.array(x0, float), sigma0, np.zeros(n)
        self.q: list[np.ndarray] = [
            np.zeros(n) for _ in range(self.m)
        ]  # logical order, oldest first
        self.t: list[int] = []
        self.W, self.seed, self.g = 0.0, seed, 0
        self.previous: list[float] = []

    def place(self, u: float) -> int:
        """Logical place of a uniform number: age j has probability c_a (1-c_a)^j / gamma."""
        total = 0.0
        for age in range(self.m):
            total += self.ca * (1 - self.ca) ** age / self.gamma
            if u < total:
                return self.m - 1 - age
        return 0

    def candidates(self) -> np.ndarray:
        h = math.ceil(self.lam / 2)
        steps = []
        for i in range(h):
            u = randomness.uniforms(self.l, self.seed, Stream.MIXTURE_INDEX, self.g, i)
            factors = randomness.normals(self.l, self.seed, Stream.MIXTURE_FACTOR, self.g, i)
            z = math.sqrt(1 - self.gamma) * randomness.normals(
                self.n, self.seed, Stream.ISOTROPIC, self.g, i
            )
            z = z.astype(float)
            for k in range(self.l):
                z = (
                    z
                    + math.sqrt(self.gamma / self.l) * float(factors[k]) * self.q[self.place(u[k])]
                )
            steps.append(z)
        rows = [self.mean + self.sigma * z for z in steps]
        rows += [self.mean - self.sigma * z for z in steps[: self.lam - h]]
        return np.array(rows)

    def step(self, f) -> None:
        if not self.previous:
            self.previous = [f(self.mean)] * self.lam
        X = self.candidates()
        values = [f(x) for x in X]
        order = sorted(range(self.lam), key=lambda i: (values[i], i))
        new_mean = sum(self.w[i] * X[order[i]] for i in range(self.mu))
        self.p = (1 - self.cc) * self.p + math.sqrt(self.cc * (2 - self.cc) * self.mueff) * (
            new_mean - self.mean
        ) / self.sigma
        if len(self.t) < self.m:
            drop = 0  # a zero vector: the archive is not full yet
            self.t = [*self.t, self.g]
        else:
            gaps = [self.t[k] - self.t[k - 1] for k in range(1, self.m)]
            k = gaps.index(min(gaps))
            drop = 0 if gaps[k] > self.T else k + 1
            del self.t[drop]
            self.t.append(self.g)
        del self.q[drop]
        self.q.append(self.p.astype(np.float32).astype(float))
        success = sum(self.w[i] for i in range(self.mu) if values[order[i]] < self.previous[i])
        self.W = (1 - self.cs) * self.W + math.sqrt(self.cs * (2 - self.cs) * self.mueff) * (
            2 * success - 1
        )
        phi = 0.5 * (1 + math.erf(self.W / math.sqrt(2)))
        self.sigma *= math.exp((phi - 1 + self.alphaz) / self.ds)
        self.previous = [values[i] for i in order]
        self.mean = new_mean
        self.g += 1
