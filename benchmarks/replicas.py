"""Replicas against shipping the candidates: time and bytes on the head's wire, per generation.

    python benchmarks/replicas.py                        # n = 1e4, 1e5, 1e6; needs root and unshare
    python benchmarks/replicas.py 1e6 --generations 5 --rates full 1gbit

Three "machines" are network namespaces of this one, joined by a bridge: they share its cores, but
every byte between them is real and counted. All of it vanishes with the process. Where root or
`unshare` is missing, only the payload is counted, in processes of this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pickle
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import mmes
from mmes.evaluate.choose import make_evaluator
from mmes.replicas import Dask, Local, Ray
from mmes.replicas.crew import Crew
from mmes.replicas.local import LocalEngine

HEAD, FAR = "10.9.0.10", ("10.9.0.11", "10.9.0.12")
LARGEST_ARCHIVE = 200
OPTIONS = {
    "vectorized": False,
    "evaluation_timeout": None,
    "retries": 3,
    "on_lost": "raise",
    "chunk_size": None,
}
WAYS = (
    "replicas, Ray",
    "shipped, Ray",
    "replicas, Dask",
    "shipped, Dask",
    "this process",
    "workers=2",
)


def sphere(x):
    return float(x @ x)


# The measurement, in the head's namespace


class ShippedByRay:
    """Sends half of the candidates to each of two actors."""

    def __init__(self):
        import ray

        class Evaluates:
            def values(self, points):
                return [sphere(x) for x in points]

        self.ray = ray
        made = ray.remote(Evaluates).options(num_cpus=0, resources={"far": 1})
        self.actors = [made.remote() for _ in FAR]

    def evaluate(self, points, generation, keep_going):
        half = len(points) // 2
        parts = [points[:half], points[half:]]
        answers = [a.values.remote(part) for a, part in zip(self.actors, parts, strict=True)]
        return np.concatenate(self.ray.get(answers))

    def close(self):
        for actor in self.actors:
            self.ray.kill(actor)


def evaluator_of(way, client):
    workers = {
        "replicas, Ray": lambda: Ray(2, cpus=0, resources={"far": 1}),
        "shipped, Ray": ShippedByRay,
        "shipped, Dask": lambda: client,
        "replicas, Dask": lambda: Dask(client, 2),
        "this process": lambda: None,
        "workers=2": lambda: 2,
    }[way]()
    return make_evaluator(sphere, workers, (), OPTIONS)


def wire_bytes():
    for line in Path("/proc/self/net/dev").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name.strip() == "eth0":
            numbers = rest.split()
            return int(numbers[0]) + int(numbers[8])
    return 0


def generations(way, n, count, client):
    """Return seconds and bytes of each generation after two that do not count, and the state."""
    archive = min(LARGEST_ARCHIVE, 2 * int(np.ceil(np.sqrt(n))))
    es = mmes.MMES(np.ones(n), 1.0, seed=1, archive_size=archive)
    evaluator = evaluator_of(way, client)
    spent = []
    try:
        evaluator.follow(es)
        for _ in range(count + 2):
            began, before = time.perf_counter(), wire_bytes()
            evaluator.begin(es.generation, es.rows)
            points = es.ask()
            values = evaluator.evaluate(points, es.generation, lambda: True)
            del points
            es.tell(values)
            evaluator.told(values)
            spent.append((time.perf_counter() - began, wire_bytes() - before))
    finally:
        evaluator.close()
    return spent[2:], (es.sigma, es.best_value)


def measure(arguments):
    import ray

    client = None
    if needs_dask(arguments.ways):
        from distributed import Client

        client = Client(f"tcp://{HEAD}:8786")
        client.wait_for_workers(2, timeout=60)
    ray.init(address=f"{HEAD}:6379", logging_level="error", log_to_driver=False)
    time.sleep(5)
    before = wire_bytes()
    time.sleep(10)
    idle = (wire_bytes() - before) / 10
    found = {"idle": idle, "rows": []}
    for n in arguments.dims:
        spent = {way: [] for way in arguments.ways}
        ends = set()
        for _ in range(arguments.turns):
            for way in arguments.ways:
                some, end = generations(way, int(n), arguments.generations, client)
                spent[way] += some
                ends.add(end)
        found["rows"].append(
            {
                "n": int(n),
                "same": len(ends) == 1,
                "ways": {
                    way: (
                        statistics.median(seconds for seconds, _ in some),
                        statistics.median(count for _, count in some),
                    )
                    for way, some in spent.items()
                },
            }
        )
    print("RESULT " + json.dumps(found), flush=True)
    if client is not None:
        client.close()
    ray.shutdown()


def needs_dask(ways):
    return any("Dask" in way for way in ways)


# The three machines


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, **options)


def build_network(rate):
    run("ip", "link", "add", "bridge0", "type", "bridge")
    run("ip", "link", "set", "bridge0", "up")
    run("ip", "link", "set", "lo", "up")
    for number, address in enumerate((HEAD, *FAR)):
        name = f"machine{number}"
        run("ip", "netns", "add", name)
        run("ip", "link", "add", f"v{number}", "type", "veth", "peer", "eth0", "netns", name)
        run("ip", "link", "set", f"v{number}", "master", "bridge0", "up")
        run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        run("ip", "-n", name, "link", "set", "eth0", "up")
        run("ip", "-n", name, "link", "set", "lo", "up")
        if rate != "full":
            limit = ("tbf", "rate", rate, "burst", "256kb", "latency", "50ms")
            run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "eth0", "root", *limit)


def inside(arguments):
    """Build the network, start both clusters, measure; everything ends with this process."""
    # Names of network namespaces are files, here in a folder of our own.
    Path("/run/netns").mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "tmpfs", "/run/netns")
    build_network(arguments.rates[0])
    folder = tempfile.mkdtemp(prefix="mmes-ray-")
    environment = os.environ | {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_DISABLE_IMPORT_WARNING": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_NUM_REDIS_GET_RETRIES": "120",  # seconds to start, on a busy machine
        # Ray lets its workers give way to everyone else, which would compare the load of the day.
        "RAY_worker_niceness": "0",
        "PYTHONWARNINGS": "ignore",
    }
    beside = Path(sys.executable).parent
    ray, dask = (
        shutil.which(tool, path=f"{beside}:{os.environ['PATH']}") for tool in ("ray", "dask")
    )
    quiet = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = []
    try:
        for number, address in enumerate((HEAD, *FAR)):
            here = ["ip", "netns", "exec", f"machine{number}"]
            place = ["--head", "--port=6379", "--include-dashboard=false", f"--temp-dir={folder}"]
            if number:
                place = [f"--address={HEAD}:6379", "--resources", '{"far": 1}']
            store = "--object-store-memory=800000000"
            node = [f"--node-ip-address={address}", "--num-cpus=1", store, "--disable-usage-stats"]
            command = [*here, sys.executable, ray, "start", *place, *node]
            for _ in range(4):  # Ray gives a node 30 seconds, which a busy machine may not have
                with open(f"{folder}-log", "w") as log:
                    done = subprocess.run(command, env=environment, stdout=log, stderr=log)
                if done.returncode == 0:
                    break
            else:
                raise SystemExit(f"Ray does not start:\n{Path(log.name).read_text()[-3000:]}")
            command = ["worker", f"tcp://{HEAD}:8786", "--host", address, "--nthreads", "1"]
            if not number:
                command = ["scheduler", "--host", HEAD, "--port", "8786", "--no-dashboard"]
            else:
                command += ["--no-dashboard", "--local-directory", folder, "--memory-limit", "0"]
            if needs_dask(arguments.ways):
                started.append(subprocess.Popen([*here, sys.executable, dask, *command], **quiet))
                time.sleep(1)
        words = [str(int(float(n))) for n in arguments.dims]
        command = [*words, "--measure", "--generations", str(arguments.generations)]
        command += ["--turns", str(arguments.turns), "--ways", *arguments.ways]
        run("ip", "netns", "exec", "machine0", sys.executable, __file__, *command, env=environment)
    finally:
        for process in started:
            process.kill()
        with contextlib.suppress(Exception):
            run(sys.executable, ray, "stop", "--force", **quiet)
        shutil.rmtree(folder, ignore_errors=True)
        Path(f"{folder}-log").unlink(missing_ok=True)


def on_three_machines(arguments, rate):
    """Return what was measured with the wire at a rate."""
    words = [str(int(float(n))) for n in arguments.dims]
    command = ["unshare", "-n", "-m", "-p", "--fork", "--mount-proc", sys.executable, __file__]
    command += [*words, "--inside", "--rates", rate, "--generations", str(arguments.generations)]
    command += ["--turns", str(arguments.turns), "--ways", *arguments.ways]
    done = subprocess.run(command, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    raise SystemExit(f"the measurement failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")


# Without root


class Counted(LocalEngine):
    """Processes of this machine; adds up what travels."""

    payload = 0

    def call(self, handle, message):
        self.payload += len(pickle.dumps(message, 5))
        return super().call(handle, message)

    def result(self, future):
        answer = super().result(future)
        self.payload += len(pickle.dumps(answer, 5))
        return answer


def payload_of(n, count):
    """Return the bytes of all messages and answers of a generation, for two replicas."""
    from mmes.evaluate.remote import Task

    engine = Counted(2)
    crew = Crew(engine, Local(2).terms, Task(sphere), threads=1)
    es = mmes.MMES(np.ones(n), 1.0, seed=1, archive_size=20)
    try:
        crew.follow(es)
        engine.payload = 0
        for _ in range(count):
            crew.begin(es.generation, es.rows)
            values = crew.evaluate(es.ask(), es.generation, lambda: True)
            es.tell(values)
            crew.told(values)
        return engine.payload / count, es.population_size
    finally:
        crew.close()


def shown(seconds, count):
    unit = f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.3g} MB"
    return f"{seconds * 1e3:.3g} ms, {unit}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dims", nargs="*", type=float, default=[1e4, 1e5, 1e6])
    parser.add_argument("--generations", type=int, default=5)
    parser.add_argument("--turns", type=int, default=2, help="number of turns of all variants")
    parser.add_argument("--rates", nargs="+", default=["full", "1gbit"])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return measure(arguments)
    if arguments.inside:
        return inside(arguments)
    missing = [tool for tool in ("unshare", "ip", "tc") if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing:
        why = f"{', '.join(missing)} is missing" if missing else "root is needed"
        print(
            f"Network traffic cannot be counted here: {why} (for network namespaces). Only the "
            "payload:\n"
        )
        for n in map(int, arguments.dims):
            count, rows = payload_of(n, arguments.generations)
            print(f"n = {n:,}: {count / 1e3:.1f} kB; shipped {8e-6 * n * rows:.3g} MB")
        return None
    print(
        "| n | " + " | ".join(arguments.ways) + " |\n" + "| --- " * (len(arguments.ways) + 1) + "|"
    )
    for rate in arguments.rates:
        found = on_three_machines(arguments, rate)
        for row in found["rows"]:
            cells = [shown(*row["ways"][way]) for way in arguments.ways]
            place = f"{row['n']:.0e}" + ("" if rate == "full" else f" on {rate}")
            print(f"| {place} | " + " | ".join(cells) + " |", flush=True)
            if not row["same"]:
                raise SystemExit("the variants have followed different paths")
        print(f"(idle traffic of the clusters: {found['idle'] / 1e3:.1f} kB/s)", flush=True)
    return None


if __name__ == "__main__":
    main()
