"""Evaluate on a Dask cluster; here a local one, of which one process is killed.

    pip install mmes[dask]
    python examples/dask_cluster.py

On a real cluster, use the scheduler's address: Client("tcp://..."). Dask repeats lost evaluations
on other workers, and mmes resubmits those that Dask gives up. The result does not change.
"""

import os
import signal
import threading

import numpy as np
from distributed import Client, LocalCluster

import mmes
from mmes.testing.hostile import uneven


def kill_a_worker(client: Client) -> None:
    first = next(iter(client.run(os.getpid).values()))
    os.kill(first, signal.SIGKILL)


if __name__ == "__main__":
    options = {"seed": 1, "max_evaluations": 1000}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        threading.Timer(1.0, kill_a_worker, [client]).start()
        result = mmes.minimize(uneven, np.ones(20), 1.0, workers=client, **options)
    print(result)
    alone = mmes.minimize(uneven, np.ones(20), 1.0, **options)
    print("the same as in this process:", np.array_equal(alone.x, result.x))
