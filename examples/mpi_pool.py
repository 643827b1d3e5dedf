"""Evaluate with MPI: one process runs mmes, all others evaluate.

    pip install mmes[mpi]
    mpiexec -n 4 python -m mpi4py.futures examples/mpi_pool.py [run.mmes]

MPI ends the whole job when a process dies. With a checkpoint, the same command resumes the run
(resume="auto"), and the result is that of an uninterrupted run.
"""

import sys

import numpy as np
from mpi4py.futures import MPIPoolExecutor

import mmes
from mmes.testing.hostile import uneven

if __name__ == "__main__":
    options = {"checkpoint": sys.argv[1], "resume": "auto"} if len(sys.argv) > 1 else {}
    with MPIPoolExecutor() as executor:
        result = mmes.minimize(
            uneven,
            np.ones(20),
            1.0,
            workers=executor,
            seed=1,
            max_evaluations=1000,
            checkpoint_seconds=0.2,
            **options,
        )
    print(result)
    print("x", result.x.tobytes().hex())
