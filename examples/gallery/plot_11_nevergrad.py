"""
How do I use it inside nevergrad?
=================================

nevergrad asks for one candidate at a time. A nevergrad optimizer around a strategy of this library
takes 40 lines. Once registered, it can be used by name in nevergrad's benchmarks.
"""

import matplotlib.pyplot as plt
import nevergrad as ng
import numpy as np
from nevergrad.optimization import base

import mmes


class _MMES(base.Optimizer):
    """Hands out the rows of a generation, and tells the strategy when all have come back."""

    def __init__(self, parametrization, budget=None, num_workers=1, *, sigma=1.0):
        super().__init__(parametrization, budget=budget, num_workers=num_workers)
        seed = int(self._rng.randint(2**31))
        self._es = mmes.MMES(np.zeros(self.dimension), sigma, seed=seed)
        self._values = {}
        self._next = 0

    def _internal_ask_candidate(self):
        points = self._es.ask()
        row = self._next % len(points)  # beyond the generation: repeat one that is still pending
        while row in self._values:
            row = (row + 1) % len(points)
        self._next = row + 1
        made = self.parametrization.spawn_child()
        made.set_standardized_data(points[row])
        made._meta["mmes"] = (self._es.generation, row)
        return made

    def _internal_tell_candidate(self, candidate, loss):
        generation, row = candidate._meta["mmes"]
        if generation == self._es.generation:
            self._values.setdefault(row, loss)
        if len(self._values) == len(self._es.ask()):
            self._es.tell([self._values[i] for i in range(len(self._values))])
            self._values, self._next = {}, 0

    def _internal_tell_not_asked(self, candidate, loss):
        raise base.errors.TellNotAskedNotSupportedError


class ConfiguredMMES(base.ConfiguredOptimizer):
    """MMES with a start mutation strength."""

    def __init__(self, *, sigma=1.0):
        super().__init__(_MMES, locals())


MMES = ConfiguredMMES(sigma=0.5).set_name("MMES", register=True)

# %%
# Now it can be used like a built-in optimizer of nevergrad.


def f(x):
    """Return the distance from 0.3, with soft and stiff variables."""
    return float(np.sum(np.linspace(1, 10, x.size) * (x - 0.3) ** 2))


curves = {}
for name in ("MMES", "DiagonalCMA"):
    optimizer = ng.optimizers.registry[name](ng.p.Array(shape=(100,)), budget=1500)
    optimizer.parametrization.random_state.seed(1)
    best, seen = np.inf, []
    for _ in range(1500):
        candidate = optimizer.ask()
        loss = f(candidate.value)
        optimizer.tell(candidate, loss)
        best = min(best, loss)
        seen.append(best)
    curves[name] = seen
    print(name, best)

# %%
# There is only one run each, so the figure shows that it works, not which is better: DiagonalCMA
# starts with longer steps.

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
for name, seen in curves.items():
    axes.semilogy(seen, label=name)
axes.set(xlabel="evaluations", ylabel="best value")
axes.legend(frameon=False)
