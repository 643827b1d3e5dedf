"""
How do I read a report?
=======================

``mmes report FOLDER`` writes one HTML page that opens offline. For a single run it shows the best
value, the step size and the variables; for a comparison also tables with significance tests. Here
is how to read its two main charts, for a run that restarts.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

folder = Path(tempfile.mkdtemp())

# %%
# A rugged problem: when a start has found a local optimum, a new one begins with twice the
# population.

(folder / "model.py").write_text("""
import numpy as np

def rugged(X):
    return np.sum(X**2 - 6 * np.cos(2 * np.pi * X) + 6, axis=1)
""")
command = """run model.py:rugged --vectorized --dim 10 --bounds=-4,4 --strategy cma-es --seed 4
    --restarts 6 --max-evaluations 40000 --target 1e-6 --quiet --out out"""
for words in (command, "report out"):
    subprocess.run([sys.executable, "-m", "mmes", *words.split()], cwd=folder, check=False)
print(sorted(file.name for file in (folder / "out").iterdir()))

# %%
# **Best value**: a flat part that ends in a jump is a restart that found a better local optimum.
# **Step size**: a straight fall is convergence; a jump up is a restart; a fall while the best value
# does not improve is a failing search, often because the objective is noisy.

columns = np.genfromtxt(folder / "out" / "history.csv", delimiter=",", names=True)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for start in np.unique(columns["start"]):
    here = columns[columns["start"] == start]
    left.semilogy(here["evaluations"], here["best"], label=f"start {int(start) + 1}")
    right.semilogy(here["evaluations"], here["sigma"])
left.set(xlabel="evaluations", ylabel="best value")
right.set(xlabel="evaluations", ylabel="step size sigma")
left.legend(frameon=False)
