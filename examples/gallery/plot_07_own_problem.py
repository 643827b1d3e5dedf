"""
How do I compare strategies on my own problem?
==============================================

Write the problem as a function in a file, and a plan that says what to compare. The laboratory runs
the plan on all cores, and continues after an interruption.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from mmes.lab.experiments.results.store import Store

folder = Path(tempfile.mkdtemp())

# %%
# The problem: where on a line should thirty sensors be placed, so that no two are close? With
# ``vectorized`` the function gets one candidate per row.

(folder / "sensors.py").write_text('''
import numpy as np

def crowding(X):
    """Energy of charges on a line of unit length, one value per row."""
    places = np.clip(X, 0, 1)
    gaps = np.abs(places[:, :, None] - places[:, None, :]) + np.eye(X.shape[1])
    outside = 10 * np.sum((X - places) ** 2, axis=1)
    return np.sum(1 / (gaps + 1e-3), axis=(1, 2)) / X.shape[1] + outside
''')

# %%
# The plan: three strategies, five seeds.

(folder / "plan.toml").write_text("""
name = "Sensors on a line"
problems = [{ name = "sensors.py:crowding", vectorized = true, label = "sensors" }]
dimensions = [30]
seeds = 5
max_evaluations = 6000
target = "none"
start = [0, 1]
sigma0 = 0.2
chosen = "MMES"

[[strategy]]
name = "mmes"
label = "MMES"

[[strategy]]
name = "cma-es"
label = "CMA-ES"

[[strategy]]
name = "lm-ma"
label = "LM-MA-ES"
""")
command = [sys.executable, "-m", "mmes", "bench", "plan.toml", "--out", "out", "--workers", "1"]
done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
print(done.stdout[done.stdout.index("Best values") :].rpartition("\n\n")[0])

# %%
# The runs are plain rows that you can use in any way: here the five final values per strategy.

rows = list(Store(folder / "out" / "runs").rows())
labels = sorted({row["strategy_label"] for row in rows})
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.boxplot(
    [[r["best"] for r in rows if r["strategy_label"] == label] for label in labels],
    tick_labels=labels,
)
axes.set(ylabel="best value after 6000 evaluations")
