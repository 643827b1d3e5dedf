#!/bin/sh
# One run on two nodes, one MPI rank on each:
#     sbatch slurm_mpi.sh
# If a node dies, MPI ends the job; it is queued again (--requeue) and continues from its
# checkpoint, which must be on a file system that the nodes share.
#SBATCH --job-name=fit
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=fit-mpi.log
# `srun --mpi=list` shows what your SLURM offers: pmi2 for MPICH, pmix for Open MPI.
srun --mpi=pmi2 --kill-on-bad-exit python fit.py mpi fit.mmes 1 && exit
# --requeue is for lost nodes only. A rank that is killed on a healthy node (out of memory, say)
# fails the job: queue it again, but not for ever, since the program itself may be wrong.
[ "${SLURM_RESTART_COUNT:-0}" -lt 3 ] && scontrol requeue "$SLURM_JOB_ID"
