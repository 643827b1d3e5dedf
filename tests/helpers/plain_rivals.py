"""Every rival a second time, written from the specification alone, literal: the oracles.

One class a strategy, with `candidates()` and `take(values)`. Only the random numbers are the
library's, at the addresses that the library uses.
"""

from __future__ import annotations

import math

import numpy as np

from mmes.base import randomness
from mmes.base.randomness import Stream


def phi(x: float) -> float:
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def ranks_together(now, before):
    """Ranks of both lists in their union, the earlier generation first among equals."""
    tagged = sorted(
        [(v, 0, i) for i, v in enumerate(before)] + [(v, 1, i) for i, v in enumerate(now)]
    )
    r, big_r = [0] * len(now), [0] * len(before)
    for rank, (_, which, i) in enumerate(tagged, start=1):
        (r if which else big_r)[i] = rank
    return r, big_r


class Plain:
    """Population, weights, sorting; the strategies differ in `step(z, k)` and `learn`."""

    mirrored = False
    noise = "normal"

    def __init__(self, x0, sigma0: float, seed: int):
        self.n = n = len(x0)
        self.lam = 4 + math.floor(3 * math.log(n))
        self.mu = self.lam // 2
        raw = [math.log(self.mu + 0.5) - math.log(i) for i in range(1, self.mu + 1)]
        self.w = [r / sum(raw) for r in raw]
        self.mueff = 1 / sum(w * w for w in self.w)
        self.m, self.sigma, self.seed, self.g = np.array(x0, float), sigma0, seed, 0
        self.s, self.F = 0.0, None
        self.prepare()

    @property
    def fresh(self) -> int:
        return math.ceil(self.lam / 2) if self.mirrored else self.lam

    def factor_normals(self, used: int) -> np.ndarray:
        """r_1 .. r_used of every fresh candidate."""
        r = randomness.normals(self.fresh * used, self.seed, Stream.MIXTURE_FACTOR, self.g)
        return r.reshape(self.fresh, used).astype(float)

    def candidates(self) -> np.ndarray:
        draw = randomness.normals if self.noise == "normal" else randomness.signs
        z = [
            draw(self.n, self.seed, Stream.ISOTROPIC, self.g, k).astype(float)
            for k in range(self.fresh)
        ]
        self.begin()
        y = [self.step(z[k], k) for k in range(self.fresh)]
        rest = self.lam - self.fresh
        self.z, self.y = z + [-v for v in z[:rest]], y + [-v for v in y[:rest]]
        return np.array([self.m + self.sigma * v for v in self.y])

    def take(self, values) -> None:
        order = sorted(range(self.lam), key=lambda k: values[k])
        f = [values[k] for k in order]
        self.z_w = sum(w * self.z[k] for w, k in zip(self.w, order, strict=False))
        self.y_w = sum(w * self.y[k] for w, k in zip(self.w, order, strict=False))
        self.best = order[: self.mu]
        self.learn(f)
        self.m = self.m + self.old_sigma * self.y_w
        self.F = f
        self.g += 1

    def begin(self) -> None:
        self.old_sigma = self.sigma

    def prepare(self) -> None: ...

    def success_rule(self, f, target: float) -> None:
        """RSR."""
        if self.F is None:
            return
        r, big_r = ranks_together(f[: self.mu], self.F[: self.mu])
        q = sum(w * (b - a) for w, a, b in zip(self.w, r, big_r, strict=True)) / self.mu
        self.s = 0.7 * self.s + 0.3 * (q - target)
        self.sigma *= math.exp(self.s)


class PlainRm(Plain):
    memory = 2

    def prepare(self):
        n = self.n
        self.ccov, self.c = 1 / (3 * math.sqrt(n) + 5), 2 / (n + 7)
        self.p = np.zeros(n)
        self.P, self.t = [np.zeros(n)] * self.memory, [0] * self.memory

    def begin(self):
        super().begin()
        stored = min(self.g, self.memory)
        self.r = self.factor_normals(stored)  # the newest path has the first

    def step(self, z, k):
        m, c = self.memory, self.ccov
        y = (1 - c) ** (m / 2) * z
        for i in range(1, m + 1):
            age = m - i
            if age < self.r.shape[1]:
                y = y + math.sqrt(c) * (1 - c) ** ((m - i) / 2) * self.r[k, age] * self.P[i - 1]
        return y

    def learn(self, f):
        self.p = (1 - self.c) * self.p + math.sqrt(self.c * (2 - self.c) * self.mueff) * self.y_w
        gaps = [self.t[i] - self.t[i - 1] for i in range(1, self.memory)]
        drop = 0
        if gaps and min(gaps) <= self.n and self.g >= self.memory:
            drop = gaps.index(min(gaps)) + 1
        del self.P[drop], self.t[drop]
        self.P.append(self.p)
        self.t.append(self.g + 1)
        self.success_rule(f, 0.3)


class PlainR1(PlainRm):
    memory = 1


class PlainSDA(Plain):
    mirrored = True

    def prepare(self):
        n = self.n
        self.ccov, self.cc = 0.4 / math.sqrt(n), 0.25 / math.sqrt(n)
        first = randomness.normals(10 * n, self.seed, Stream.INITIAL_DIRECTIONS)
        self.q = [1e-6 * v.astype(float) for v in first.reshape(10, n)]

    def begin(self):
        super().begin()
        self.r = self.factor_normals(10)

    def step(self, z, k):
        along = sum(r * q for r, q in zip(self.r[k], self.q, strict=True))
        return math.sqrt(1 - self.ccov) * z + math.sqrt(self.ccov) * along

    def learn(self, f):
        u = math.sqrt(self.mueff) * self.y_w
        for i in range(10):
            self.q[i] = (1 - self.cc) * self.q[i] + math.sqrt(self.cc * (2 - self.cc)) * u
            t = (u @ self.q[i]) / (self.q[i] @ self.q[i])
            u = (u - t * self.q[i]) / math.sqrt(1 + t * t)
        lam = self.lam
        _, big_r = ranks_together(f, self.F)
        big_u = sum(big_r) - lam * (lam + 1) / 2
        big_z = (big_u - lam**2 / 2) / math.sqrt(lam**2 * (2 * lam + 1) / 12)
        self.s = 0.7 * self.s + math.sqrt(0.3 * 1.7) * big_z
        self.sigma *= math.exp(phi(self.s) / 0.95 - 1)


class PlainCMA(Plain):
    """The covariance as a dense matrix, updated in every generation, factorised every `gap`."""

    def prepare(self):
        n, me = self.n, self.mueff
        self.cs = (me + 2) / (n + me + 5)
        self.ds = 1 + 2 * max(0, math.sqrt((me - 1) / (n + 1)) - 1) + self.cs
        self.cc = (4 + me / n) / (n + 4 + 2 * me / n)
        self.c1 = 2 / ((n + 1.3) ** 2 + me)
        self.cmu = min(1 - self.c1, 2 * (me - 2 + 1 / me) / ((n + 2) ** 2 + me))
        self.chi = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))
        self.gap = self.lam / (10 * n * (self.c1 + self.cmu))
        self.C, self.A = np.eye(n), np.eye(n)
        self.ps, self.pc, self.last = np.zeros(n), np.zeros(n), 0

    def step(self, z, k):
        return self.A @ z

    def learn(self, f):
        self.ps = (1 - self.cs) * self.ps + math.sqrt(
            self.cs * (2 - self.cs) * self.mueff
        ) * self.z_w
        length = np.linalg.norm(self.ps)
        settled = math.sqrt(1 - (1 - self.cs) ** (2 * (self.g + 1)))
        h = 1 if length / settled < (1.4 + 2 / (self.n + 1)) * self.chi else 0
        self.pc = (1 - self.cc) * self.pc + h * math.sqrt(
            self.cc * (2 - self.cc) * self.mueff
        ) * self.y_w
        decay = 1 - self.c1 - self.cmu + (1 - h) * self.c1 * self.cc * (2 - self.cc)
        self.adapt(decay)
        self.sigma *= math.exp(min(1, self.cs / self.ds * (length / self.chi - 1)))

    def adapt(self, decay):
        self.C = decay * self.C + self.c1 * np.outer(self.pc, self.pc)
        for w, k in zip(self.w, self.best, strict=True):
            self.C = self.C + self.cmu * w * np.outer(self.y[k], self.y[k])
        if (self.g + 1) * self.lam - self.last > self.gap:
            self.A = np.linalg.cholesky(self.C)
            self.last = (self.g + 1) * self.lam


class PlainActive(PlainCMA):
    """The worse half with negative weights, as the tutorial of 2016 gives them."""

    def learn(self, f):
        self.rest = sorted(set(range(self.lam)) - set(self.best), key=self.value_of)
        super().learn(f)

    def take(self, values):
        self.value_of = lambda k: (values[k], k)
        super().take(values)

    def adapt(self, decay):
        lam, n, me = self.lam, self.n, self.mueff
        raw = [math.log((lam + 1) / 2) - math.log(i) for i in range(self.mu + 1, lam + 1)]
        minus = sum(raw) ** 2 / sum(r * r for r in raw)
        alpha = min(
            1 + self.c1 / self.cmu,
            1 + 2 * minus / (me + 2),
            (1 - self.c1 - self.cmu) / (n * self.cmu),
        )
        negative = [alpha * r / abs(sum(raw)) for r in raw]
        # 1 - c_1 - c_mu sum of all w, where the positive ones sum to 1.
        self.C = (decay - self.cmu * sum(negative)) * self.C
        for w, k in zip(negative, self.rest, strict=True):
            turned = w * n / (self.z[k] @ self.z[k])
            self.C = self.C + self.cmu * turned * np.outer(self.y[k], self.y[k])
        super().adapt(1.0)


class PlainSep(PlainCMA):
    def prepare(self):
        super().prepare()
        self.c1 = min(1, self.c1 * (self.n + 1.5) / 3)
        self.cmu = min(1 - self.c1, self.cmu * (self.n + 1.5) / 3)
        self.c = np.ones(self.n)

    def step(self, z, k):
        return np.sqrt(self.c) * z

    def adapt(self, decay):
        rank_mu = sum(w * self.z[k] ** 2 for w, k in zip(self.w, self.best, strict=True))
        self.c = decay * self.c + self.c1 * self.pc**2 + self.cmu * self.c * rank_mu


class PlainLMMA(Plain):
    mirrored = True

    def prepare(self):
        n = self.n
        self.count = 4 + math.floor(3 * math.log(n))
        self.cs = min(1, 2 * self.lam / n)
        self.cd = [min(0.5, 1 / (1.5**i * n)) for i in range(self.count)]
        self.cc = [min(1, self.lam / (4**i * n)) for i in range(self.count)]
        self.M, self.ps = [np.zeros(n)] * self.count, np.zeros(n)

    def step(self, z, k):
        y = z
        for i in range(min(self.g, self.count)):
            y = (1 - self.cd[i]) * y + self.cd[i] * (self.M[i] @ y) * self.M[i]
        return y

    def learn(self, f):
        c = self.cs
        self.ps = (1 - c) * self.ps + math.sqrt(c * (2 - c) * self.mueff) * self.z_w
        for i, c in enumerate(self.cc):
            self.M[i] = (1 - c) * self.M[i] + math.sqrt(c * (2 - c) * self.mueff) * self.z_w
        self.sigma *= math.exp(min(1, self.cs * (self.ps @ self.ps / self.n - 1)))


class PlainLMCMA(Plain):
    mirrored = True
    noise = "rademacher"

    def prepare(self):
        n = self.n
        self.m_max = 4 + math.floor(3 * math.log(n))
        self.cc, self.c1 = 0.5 / math.sqrt(n), 1 / (10 * math.log(n + 1))
        self.period = max(1, math.floor(math.log(n)))
        self.a = math.sqrt(1 - self.c1)
        self.pc = np.zeros(n)
        self.P, self.V, self.b, self.e, self.t = [], [], [], [], []  # oldest first

    def begin(self):
        super().begin()
        self.r = np.abs(randomness.normals(self.fresh, self.seed, Stream.DIRECTION_COUNT, self.g))

    def step(self, z, k):
        r = 4 * self.r[k] * (10 if k == 0 else 1)
        count = min(math.floor(r), len(self.P))
        y = z
        for j in range(len(self.P) - count, len(self.P)):
            y = self.a * y + self.b[j] * (self.V[j] @ z) * self.P[j]
        return y

    def learn(self, f):
        self.pc = (1 - self.cc) * self.pc + math.sqrt(
            self.cc * (2 - self.cc) * self.mueff
        ) * self.y_w
        if self.g % self.period == 0:
            if len(self.P) == self.m_max:
                gaps = [self.t[i] - self.t[i - 1] - self.n for i in range(1, self.m_max)]
                drop = 0 if min(gaps) >= 0 else gaps.index(min(gaps)) + 1
                del self.P[drop], self.t[drop]
            self.P.append(self.pc)
            self.t.append(self.g)
            self.rebuild()
        lam = self.lam
        if self.F is not None:
            r, big_r = ranks_together(f, self.F)
            q = (sum(big_r) - sum(r)) / lam**2
            self.s = 0.7 * self.s + 0.3 * (q - 0.3)
            self.sigma *= math.exp(self.s)

    def rebuild(self):
        self.V, self.b, self.e = [], [], []
        for p in self.P:
            v = p
            for older, e in zip(self.V, self.e, strict=True):
                v = v / self.a - e * (older @ v) * older
            nv = v @ v
            r = math.sqrt(1 + self.c1 * nv / (1 - self.c1))
            self.V.append(v)
            self.b.append(self.a / nv * (r - 1))
            self.e.append(1 / (self.a * nv) * (1 - 1 / r))


class PlainFast(Plain):
    def prepare(self):
        n = self.n
        self.c, self.c1 = 2 / (n + 5), 1 / (3 * math.sqrt(n) + 5)
        self.p, self.P = np.zeros(n), [np.zeros(n)] * self.lam

    def begin(self):
        super().begin()
        self.r = self.factor_normals(2)

    def step(self, z, k):
        if self.g < self.lam:
            return z
        c1 = self.c1
        return (
            (1 - c1) * z
            + math.sqrt(c1 * (1 - c1)) * self.r[k, 0] * self.P[k]
            + math.sqrt(c1) * self.r[k, 1] * self.p
        )

    def learn(self, f):
        self.p = (1 - self.c) * self.p + math.sqrt(self.c * (2 - self.c) * self.mueff) * self.y_w
        if self.g % self.n == 0:
            self.P = [*self.P[1:], self.p]
        self.success_rule(f, 0.27)
