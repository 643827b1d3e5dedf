#!/bin/sh
# One run on a Ray cluster of two nodes, here both on this machine:
#     sh ray.sh
# On a real cluster, run the first `ray start` on one machine and the second on each of the others,
# with the address of the first. The token keeps others out: it must be the same everywhere.
export RAY_AUTH_MODE=token
RAY_AUTH_TOKEN=$(python -c 'import secrets; print(secrets.token_hex(32))')
export RAY_AUTH_TOKEN RAY_ADDRESS=127.0.0.1:6379
ray start --block --head --node-ip-address=127.0.0.1 --port=6379 --num-cpus=1 \
    --include-dashboard=false > head.log 2>&1 &
head=$!
trap 'kill $node $head; wait' EXIT
for attempt in $(seq 60); do
    ray status > /dev/null 2>&1 && break
    sleep 1
done
ray start --block --address=127.0.0.1:6379 --num-cpus=1 > node.log 2>&1 &
node=$!
python fit.py ray:2 fit.mmes 1
