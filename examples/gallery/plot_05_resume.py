"""
How does a run survive a crash?
===============================

With ``checkpoint=`` the state is written to a file at regular intervals. After a crash, a reboot or
``kill -9`` the run continues from there, to the bit as if nothing had happened.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import mmes

folder = Path(tempfile.mkdtemp())
state = folder / "run.mmes"

# %%
# The run is a separate program, so that it can be killed.

(folder / "work.py").write_text("""
import time
import numpy as np, mmes

def f(x):
    time.sleep(2e-4)  # as if it were a simulation
    return float(np.sum(np.arange(1, 101) * (x - 1) ** 2))

if __name__ == "__main__":
    mmes.minimize(f, np.zeros(100), 0.5, seed=7,
                  checkpoint="run.mmes", checkpoint_seconds=0.5)
""")
victim = subprocess.Popen([sys.executable, "work.py"], cwd=folder)
while not state.exists():
    time.sleep(0.05)
time.sleep(0.7)  # a few more are written
os.kill(victim.pid, signal.SIGKILL)  # as the kernel does when memory runs out
print("ended with", victim.wait())

# %%
# A checkpoint contains no code, so pass the function again. Limits may change.

sys.path.insert(0, str(folder))
from work import f

resumed = mmes.resume(state, f, max_evaluations=9_000)
straight = mmes.minimize(f, np.zeros(100), 0.5, seed=7, max_evaluations=9_000)
print("resumed :", resumed.fun.hex(), resumed.nfev)
print("straight:", straight.fun.hex(), straight.nfev)
assert np.array_equal(resumed.x, straight.x)

# %%
# The two curves coincide: the run that was killed took the same steps.

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.semilogy(
    straight.history["evaluations"],
    straight.history["best"],
    lw=6,
    color="lightgray",
    label="in one go",
)
axes.semilogy(
    resumed.history["evaluations"],
    resumed.history["best"],
    lw=1.5,
    color="tab:blue",
    label="killed and resumed",
)
axes.set(xlabel="evaluations", ylabel="best value")
axes.legend(frameon=False)
