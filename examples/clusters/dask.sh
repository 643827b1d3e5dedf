#!/bin/sh
# One run on a Dask cluster: a scheduler and two workers, here three processes of this machine.
#     sh dask.sh
# On a real cluster, start the scheduler on one machine and a worker on each of the others, and give
# the scheduler's address to all. Without TLS, whoever reaches the scheduler can run code there.
dask scheduler --host 127.0.0.1 --port 8786 --no-dashboard > scheduler.log 2>&1 &
scheduler=$!
for number in 1 2; do
    dask worker tcp://127.0.0.1:8786 --nthreads 1 --no-dashboard > "worker-$number.log" 2>&1 &
    workers="$workers $!"
done
trap 'kill $workers $scheduler' EXIT
python -c 'from distributed import Client; Client("tcp://127.0.0.1:8786").wait_for_workers(2, 60)'
python fit.py tcp://127.0.0.1:8786 fit.mmes 1
