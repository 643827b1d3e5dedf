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

from mmes import extend


@dataclass
class State(extend.SearchState):
    best: float = 0.0


class OneFifthSearch(extend.SearchBase):
    options = (extend.POPULATION_SIZE, extend.damping_option("Slows the steps of sigma"))
    state_type, needs_start_value = State, True

    def __init__(self, setup, options):
        super().__init__(setup, options)
        self.damping = options["damping"]

    def start(self, value):
        self.state.best = value

    def update(self, population, ranking, values, generation):
        s, better = self.state, float(np.mean(values < self.state.best))
        if better > 0:
            self.recombine(population, ranking[:1], np.ones(1))
            s.best = float(values[ranking[0]])
        s.sigma *= math.exp((better - 0.2) / self.damping)


class OneFifth(extend.AskTell):
    name, search_type = "one-fifth", OneFifthSearch
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
