"""
How do I use a cluster?
=======================

``workers=`` takes a number of processes on this machine, or any object with a method ``submit``: a
Dask client, an MPI pool, loky. The result does not depend on the number of workers, their speed, or
which worker evaluates which candidate.
"""

import time
from concurrent.futures import ThreadPoolExecutor

import matplotlib.pyplot as plt
import numpy as np
from distributed import Client

import mmes


def slow(x):
    """Return a value after a while, as a simulation does."""
    time.sleep(0.02)
    return float(np.sum((x - 1) ** 2))


SETTING = {"max_evaluations": 240, "seed": 3}

# %%
# A local Dask client; ``Client("scheduler:8786")`` would connect to a cluster.

here = {"n_workers": 1, "threads_per_worker": 4, "processes": False}
with Client(**here, dashboard_address=":0") as client:
    dask = mmes.minimize(slow, np.zeros(50), 0.5, workers=client, **SETTING)

# %%
# With thread pools, or without workers, the result is the same to the bit.

seconds = {}
for name, count in (("8 workers", 8), ("4 workers", 4), ("2 workers", 2), ("this process", 0)):
    started = time.perf_counter()
    pool = ThreadPoolExecutor(count) if count else None
    result = mmes.minimize(slow, np.zeros(50), 0.5, workers=pool, **SETTING)
    seconds[name] = time.perf_counter() - started
    if pool:
        pool.shutdown()
    assert np.array_equal(result.x, dask.x)

# %%
# Only the time differs.

figure, axes = plt.subplots(figsize=(6, 2.2), layout="constrained")
axes.barh(list(seconds), list(seconds.values()), color="tab:blue")
axes.set(xlabel="seconds for 240 evaluations of 20 ms")
