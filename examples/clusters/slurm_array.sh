#!/bin/sh
# Four independent runs as a job array, one seed each:
#     sbatch slurm_array.sh
# A job whose node dies, or whose time is over, is queued again and continues from its checkpoint.
#SBATCH --job-name=fit
#SBATCH --array=1-4
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --time=01:00:00
#SBATCH --signal=B:TERM@60
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=fit-%a.log
seed=$SLURM_ARRAY_TASK_ID
python fit.py "$SLURM_CPUS_PER_TASK" "seed-$seed.mmes" "$seed" &
run=$!
# A minute before the end SLURM sends SIGTERM to this script; the run saves its state and ends.
trap 'kill $run; wait $run; scontrol requeue "$SLURM_JOB_ID"' TERM
wait $run
