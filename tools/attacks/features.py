"""Pairs and triples of features, at random, against the laws that hold for every run."""

from __future__ import annotations

import importlib.util
import random
import tempfile
from pathlib import Path

from attacks.sandbox import apart
from attacks.tally import Tally
from features import FEATURES, KINDS, fits, trials
from laws import broken_laws

# Combinations in one process: starting it takes longer than a trial.
_BATCH = 20
_FAILURES = {
    "success_is_true": "false success",
    "a_run_equals_its_twin": "wrong bits",
    "the_value_is_that_of_the_point": "wrong bits",
    "nothing_is_left_behind": "orphans",
}
"""What a broken law is counted as."""


def features(tally: Tally, rng: random.Random) -> None:
    """Try random combinations of two and three features."""
    seed = rng.getrandbits(32)
    for size in (2, 3):

        def work(size: int = size) -> str:
            return "\n".join(_tried(size, seed + number) for number in range(_BATCH))

        how, answer = apart(work, 600)
        kind = f"features: {'pairs' if size == 2 else 'triples'}"
        tally.inject(kind, _BATCH)
        if how != "done":
            failure = {"hung": "hangs", "crashed": "crashes"}.get(how, "other")
            tally.fail(kind, failure, f"seed {seed}: {answer}")
        for line in filter(None, answer.splitlines() if how == "done" else ()):
            law = line.split(": ")[1]
            tally.fail(kind, _FAILURES.get(law, "other"), line)


def _tried(size: int, seed: int) -> str:
    """Return what is wrong with a combination, one line for each broken law; empty if nothing."""
    rng = random.Random(seed)
    usable = [
        feature
        for feature in FEATURES.values()
        if feature.name != "device" or importlib.util.find_spec("torch") is not None
    ]
    while True:
        kind, chosen = rng.choice(list(KINDS.values())), tuple(rng.sample(usable, size))
        if fits(kind, chosen):
            break
    what = f"seed {seed}, {kind.name} with {', '.join(feature.name for feature in chosen)}"
    with tempfile.TemporaryDirectory() as folder:
        broken = [broken_laws(trial) for trial in trials(kind, chosen, seed, Path(folder))]
    return "\n".join(f"{what}: {sentence}" for part in broken for sentence in part)
