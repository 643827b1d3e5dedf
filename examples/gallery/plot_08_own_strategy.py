"""
How do I compare my own strategy with others?
=============================================

Write the strategy in a file and name the file in a plan. The laboratory then treats it like the
strategies of the library: the same problems, seeds, budgets and significance tests.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from mmes.lab.experiments.results.store import Store

folder = Path(tempfile.mkdtemp())

# %%
# The strategy: the best candidate becomes the new mean, and the one-fifth rule sets the step size.
# :doc:`/own` explains it line by line, and shows how to use and test it.

(folder / "onefifth.py").write_text('''
"""The best candidate becomes the new mean; the one-fifth rule sets the step size."""

from dataclasses import dataclass

import numpy as np

from mmes import extend


@dataclass
class State:                                    # what a checkpoint saves
    mean: extend.Handle
    sigma: float
    best: float = 0.0
    scale: extend.Handle | None = None


class OneFifthSearch(extend.Recorded[State]):
    options = (extend.POPULATION_SIZE,)
    needs_start_value, on_host, replicable = True, False, True

    def __init__(self, setup, options):
        self._kernel, self.population_size = setup.kernel, options["population_size"] or 10
        self.sampler = extend.Sampler(setup, self.population_size)
        self.step = setup.kernel.vector(setup.n)
        self.state = State(setup.mean, setup.sigma, scale=setup.scale)

    @classmethod
    def planned(cls, n, options, available):    # memory: this many vectors of length n
        return extend.planned_vectors("OneFifth", n, options, available, doubles=3, singles=0)

    def start(self, value):                     # the value of the start point
        self.state.best = value

    def sample(self, population, generation, rows=None):
        law = extend.StepLaw(scale=self.state.scale)
        self.sampler.fill(population, rows, self.state, generation, law)

    def update(self, population, ranking, values, generation):
        s, better = self.state, float((values < self.state.best).mean())
        if better > 0:
            s.best = float(values[ranking[0]])
            self._kernel.recombine(extend.RecombineCall(
                population, ranking[:1], np.ones(1), s.mean, self.step, 0.0, 1.0))
        s.sigma *= 1.2 if better > 0.2 else 0.9


class OneFifth(extend.AskTell):
    name, search_type = "one-fifth", OneFifthSearch
''')

# %%
# The plan: three problems, five seeds, and two strategies of the library for comparison.

(folder / "plan.toml").write_text("""
name = "My own strategy"
problems = ["sphere", "cigar", "rosenbrock"]
dimensions = [40]
seeds = 5
max_evaluations = 8000
target = 1e-8
chosen = "one fifth"

[[strategy]]
name = "onefifth.py:OneFifth"
label = "one fifth"

[[strategy]]
name = "mmes"
label = "MMES"

[[strategy]]
name = "sep-cma"
label = "sep-CMA-ES"
""")
command = [sys.executable, "-m", "mmes", "bench", "plan.toml", "--out", "out", "--workers", "1"]
done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
print(done.stdout[done.stdout.index("Best values") :].rpartition("\n\n")[0])

# %%
# It is equally good on the sphere, where one step size suits all variables, and far behind on the
# cigar, where one variable needs steps a thousand times longer than the others.

rows = list(Store(folder / "out" / "runs").rows())
problems = ["sphere", "cigar", "rosenbrock"]
labels = ["one fifth", "MMES", "sep-CMA-ES"]
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for shift, label in enumerate(labels):
    medians = [
        np.median(
            [r["best"] for r in rows if (r["strategy_label"], r["problem_label"]) == (label, p)]
        )
        for p in problems
    ]
    axes.bar(np.arange(3) + 0.27 * (shift - 1), medians, width=0.25, label=label)
axes.set_xticks(range(3), problems)
axes.set(yscale="log", ylabel="median of the best values")
axes.legend(frameon=False)
