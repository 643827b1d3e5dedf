#!/bin/sh
# One run on machines that have nothing but ssh: Dask workers are started by ssh.
#     HEAD=10.0.0.1 HOSTS="10.0.0.2 10.0.0.3" sh ssh.sh
# Needs keys that log in without a password, and the same Python and folder on all machines. Options
# of ssh go to SSH, the name of Python on the other machines to PYTHON.
HEAD=${HEAD:-127.0.0.1} SSH=${SSH:-ssh} PYTHON=${PYTHON:-$(command -v python)}
python -m dask scheduler --host "$HEAD" --port 8786 --no-dashboard > scheduler.log 2>&1 &
pids=$!
count=0
for host in ${HOSTS:?the machines}; do
    count=$((count + 1))
    # With -tt the worker ends when the connection does.
    $SSH -tt "$host" "cd '$PWD' && exec '$PYTHON' -m dask worker tcp://$HEAD:8786 --nthreads 1 \
        --no-dashboard" > "worker-$count.log" 2>&1 < /dev/null &
    pids="$pids $!"
done
trap 'kill $pids' EXIT
python -c "from distributed import Client
Client('tcp://$HEAD:8786').wait_for_workers($count, 60)"
python fit.py "tcp://$HEAD:8786" fit.mmes 1
