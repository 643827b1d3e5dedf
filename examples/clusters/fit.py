# fit.py
import hashlib
import sys
import time

import numpy as np

import mmes
from mmes import replicas


def f(x):
    time.sleep(0.01)  # your simulation
    return float(np.sum((x - 1) ** 2))


def workers(kind):
    if kind == "mpi":
        return replicas.MPI()  # the ranks of mpiexec or srun
    if kind.startswith("ray:"):
        return replicas.Ray(int(kind[4:]), address="auto")  # so many nodes of a Ray cluster
    if kind.startswith("tcp:"):
        from distributed import Client

        return replicas.Dask(Client(kind))  # the workers of a Dask cluster
    return int(kind)  # processes on this machine


if __name__ == "__main__":
    kind, checkpoint, seed = sys.argv[1:]
    team = workers(kind)
    search = {"strategy": "mmes", "seed": int(seed), "max_evaluations": 1200}
    saving = {"checkpoint": checkpoint, "checkpoint_seconds": 1, "resume": "auto"}
    r = mmes.minimize(f, np.zeros(200), 0.5, workers=team, progress=True, **search, **saving)
    if kind != "mpi" or team.comm.rank == 0:  # all ranks return the same result
        digest = hashlib.sha256(r.x.tobytes()).hexdigest()[:8]
        print(f"seed {seed}: {r.nfev} evaluations, f(x) = {r.fun:.4f}, digest of x: {digest}")
