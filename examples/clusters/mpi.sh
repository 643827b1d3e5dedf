#!/bin/sh
# One run on four MPI ranks of this machine; with a host file, of several machines:
#     sh mpi.sh
# If a rank dies, MPI ends all of them. The loop starts the job again, which continues from its
# checkpoint; after three failures it gives up.
for attempt in 1 2 3; do
    mpiexec -n 4 python fit.py mpi fit.mmes 1 && exit
    echo "attempt $attempt ended with exit code $?"
done
exit 1
