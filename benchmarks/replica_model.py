"""How far replicas carry: a model of one generation, from costs measured here, up to 1000 machines.

    python benchmarks/replica_model.py [--bandwidth 10] [--message 0.5] [--latency 0.05]

With T_f one evaluation, K machines, R = ceil(lambda / K), a = seconds to sample one candidate (on
one thread, measured here), t = seconds to take in one candidate (measured, too), B the bandwidth of
the head, h its cost of a message, L the latency of one step of a collective operation:

    shipping           (a + t) lambda + 8 n lambda / B + R T_f + h lambda
    star (Ray, Dask)   (a + t) lambda                  + R T_f + 2 h K
    all-to-all (MPI)   (a + t) lambda                  + R T_f + 2 L log2 K
    own rows first     max(R T_f, a lambda) in place of a lambda + R T_f

2 h K and 2 L log2 K, since values and work are two messages. Printed is the share of the ideal
lambda T_f / K. Nothing but a and t is run.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time

import numpy as np

import mmes

CASES = (
    (1e5, 16, 38, 0.1),
    (1e5, 1000, 1000, 1.0),
    (1e6, 16, 45, 1.0),
    (1e6, 100, 200, 1.0),
    (1e6, 1000, 1000, 1.0),
    (1e6, 1000, 1000, 10.0),
)


def measured(n: int, generations: int = 5) -> tuple[float, float]:
    """Return the seconds to sample one candidate and to take one in, on one thread."""
    es = mmes.MMES(np.ones(n), 1.0, seed=1, archive_size=100, threads=1)
    asked, told = [], []
    for _ in range(generations + 3):
        began = time.process_time()
        rows = es.ask().shape[0]
        middle = time.process_time()
        es.tell(np.arange(rows, dtype=float))
        asked.append((middle - began) / rows)
        told.append((time.process_time() - middle) / rows)
    return statistics.median(asked[3:]), statistics.median(told[3:])


def shares(n: float, machines: int, rows: int, seconds: float, costs: argparse.Namespace):
    """Return the share of the ideal of each way."""
    sample, take = costs.measured[n]
    share = math.ceil(rows / machines)
    own = (sample + take) * rows
    star = 2 * costs.message * machines
    collective = 2 * costs.latency * math.log2(machines)
    times = (
        own + 8 * n * rows / costs.bandwidth + share * seconds + costs.message * rows,
        own + share * seconds + star,
        own + share * seconds + collective,
        max(share * seconds, sample * rows) + take * rows + star,
        max(share * seconds, sample * rows) + take * rows + collective,
    )
    ideal = rows * seconds / machines
    return [ideal / spent for spent in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bandwidth", type=float, default=10.0, help="Gbit/s of the head")
    parser.add_argument("--message", type=float, default=0.5, help="ms of the head per message")
    parser.add_argument("--latency", type=float, default=0.05, help="ms per step of a collective")
    costs = parser.parse_args()
    costs.bandwidth *= 1e9 / 8
    costs.message *= 1e-3
    costs.latency *= 1e-3
    costs.measured = {n: measured(int(n)) for n in sorted({case[0] for case in CASES})}
    for n, (sample, take) in costs.measured.items():
        print(f"n = {n:.0e}: {sample * 1e3:.3g} ms to sample, {take * 1e3:.3g} ms to take in")
    print("\n| n | K, lambda | T_f | shipping | star | MPI | star, own rows first | MPI, same |")
    print("| --- " * 8 + "|")
    for n, machines, rows, seconds in CASES:
        cells = " | ".join(f"{share:.2f}" for share in shares(n, machines, rows, seconds, costs))
        print(f"| {n:.0e} | {machines}, {rows} | {seconds:g} s | {cells} |")
    edge = costs.message * costs.bandwidth / 8
    print(f"\nReplicas win where 8 n / B > h: above n = {edge:.0e}")


if __name__ == "__main__":
    main()
