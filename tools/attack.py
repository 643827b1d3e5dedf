"""Attack the library for a while and print what was injected and what it survived.

    python tools/attack.py [--seconds 600] [--seed 1] [--only kills,signals,...]

Kills and signals at random moments, hostile checkpoints, objectives, files and numbers, and random
pairs and triples of features against the laws of `tests/helpers/laws.py`. It is a separate program,
because it takes as long as it is given; each fault that it finds becomes a test. The exit status is
1 if anything failed.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from attacks import features, files, objectives, processes
from attacks.sandbox import children_of, left_alive
from attacks.tally import Tally

ATTACKS: dict[str, tuple[Callable[[Tally, random.Random], None], float]] = {
    "kills": (processes.kills, 0.17),
    "signals": (processes.signals, 0.32),
    "features": (features.features, 0.10),
    "checkpoints": (files.checkpoints, 0.27),
    "files": (files.names, 0.04),
    "objectives": (objectives.objectives, 0.06),
    "numbers": (objectives.numbers, 0.04),
}
"""Each attack with its share of the time."""

_PR_SET_CHILD_SUBREAPER = 36


PROGRESS_SECONDS = 60.0


def main() -> int:
    """Attack, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", default=",".join(ATTACKS))
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else int.from_bytes(os.urandom(4))
    if sys.platform == "linux":
        # What an attacked process leaves behind becomes a child of this one, where it is seen.
        with contextlib.suppress(AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    tally = Tally()
    chosen = arguments.only.split(",")
    spent = dict.fromkeys(chosen, 0.0)
    began, turn = time.monotonic(), 0
    print(f"seed {seed}", flush=True)
    told = began
    while time.monotonic() - began < arguments.seconds:
        if time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            print(f"after {(told - began) / 60:.0f} minutes: {_sums(tally)}", flush=True)
        # The one that lags most behind its share.
        name = min(chosen, key=lambda one: spent[one] / ATTACKS[one][1])
        start = time.monotonic()
        ATTACKS[name][0](tally, random.Random(f"{seed} {turn}"))
        for left in left_alive(children_of(os.getpid())):
            # A fork of this very program is the worker of an executor, which is not ours to end.
            if Path(__file__).name not in left:
                tally.fail(name, "orphans", f"turn {turn}: {left}")
        spent[name] += time.monotonic() - start
        turn += 1
    minutes = (time.monotonic() - began) / 60
    print(f"\n{turn} attacks in {minutes:.0f} minutes, seed {seed}\n\n{tally.table()}")
    print(f"\n{_sums(tally)}")
    for story in tally.stories:
        print(f"\n{story}")
    print(f"\n{'FAILED' if tally.stories else 'survived'}")
    return 1 if tally.stories else 0


def _sums(tally: Tally) -> str:
    sums: Counter[str] = Counter()
    for kind, count in tally.injected.items():
        sums[kind.split(":")[0]] += count
    words = ", ".join(f"{count:,} {kind}" for kind, count in sorted(sums.items()))
    return f"{words}; {len(tally.stories)} failures"


if __name__ == "__main__":
    sys.exit(main())
