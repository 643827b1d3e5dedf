"""
How does a strategy of my own compare?
======================================

Write it in a file, name the file in a plan, and the laboratory treats it like the strategies that
come with the library: the same problems, seeds, budgets and tests of significance.
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
# The strategy: the best candidate becomes the next centre, and the one-fifth rule sets the step.
# :doc:`/own` says how it is used elsewhere, and how it is tested.

(folder / "onefifth.py").write_text("""
import math
from dataclasses import dataclass

import numpy as np

from mmes.kernels import Handle, RecombineCall, SampleCall, StepLaw
from mmes.strategies import AskTell
from mmes.strategies.parts.population import POPULATION_SIZE, damping_option, planned_vectors
from mmes.strategies.parts.record import Recorded


@dataclass
class State:
    mean: Handle
    sigma: float
    best: float = 0.0
    scale: Handle | None = None


class OneFifthSearch(Recorded[State]):
    options = (POPULATION_SIZE, damping_option("Slows the steps of sigma"))
    needs_start_value, on_host, replicable = True, False, True

    def __init__(self, setup, options):
        self.setup, self._kernel = setup, setup.kernel
        self.path = setup.kernel.vector(setup.n)
        self.population_size = options["population_size"] or 10
        self.damping = options["damping"]
        self.state = State(setup.mean, setup.sigma, scale=setup.scale)

    @classmethod
    def planned(cls, n, options, available):
        return planned_vectors("OneFifth", n, options, available, doubles=3, singles=0)

    def start(self, value):
        self.state.best = value

    def sample(self, population, generation, rows=None):
        s, law = self.state, StepLaw(scale=self.state.scale)
        self._kernel.sample(SampleCall(
            population, self.population_size, s.mean, s.sigma, None, law, self.setup.box,
            self.setup.seed, generation, rows))

    def update(self, population, ranking, values, generation):
        s, better = self.state, float(np.mean(values < self.state.best))
        if better > 0:
            self._kernel.recombine(RecombineCall(
                population, ranking[:1], np.ones(1), s.mean, self.path, 0.0, 1.0))
            s.best = float(values[ranking[0]])
        s.sigma *= math.exp((better - 0.2) / self.damping)


class OneFifth(AskTell):
    name = "one-fifth"
    search_type = OneFifthSearch
""")

# %%
# The plan: three problems, five seeds, and two strategies of the library beside it.

(folder / "plan.toml").write_text("""
name = "A strategy of my own"
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
# It is level on the sphere, where one step size serves all variables, and far behind on the cigar,
# where one variable needs steps a thousand times longer than the others.

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
