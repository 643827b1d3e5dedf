"""Features of the library as small objects, and trials of their combinations.

    chosen = FEATURES["failures"], FEATURES["resume"]
    [broken_laws(t) for t in trials(KINDS["mmes"], chosen, seed=1, folder=path)]

Most faults are in combinations of two features, so pairs find what tests of single features do not.
"""

from __future__ import annotations

import itertools
import math
import pickle
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from laws import Trial, living
from mmes import checkpoint
from mmes.base.reasons import StopReason
from mmes.errors import EvaluationError
from mmes.minimize import minimize, resume
from mmes.strategies import get_strategy
from watched import (
    Breaks,
    Broken,
    Fails,
    Forbidden,
    Layer,
    Noise,
    Raises,
    Seen,
    Ties,
    Watched,
    sphere,
)

BOX = (-2.0, 3.0)
"""The bounds of every variable, where there are any; the start point lies on one of them."""


@dataclass(frozen=True)
class Kind:
    """A strategy to try."""

    name: str
    strategy: str  # The argument of `minimize`.
    n: int  # Number of variables.
    generation: int  # Approximate number of evaluations per generation.
    bounded: bool = False  # Whether it is an algorithm for boxes, which has no mutation strength.


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("auto small", "auto", 4, 8),
        Kind("auto large", "auto", 104, 17),
        Kind("mmes", "mmes", 5, 8),
        Kind("sep-cma", "sep-cma", 5, 8),
        Kind("competitor", "mos", 5, 15, bounded=True),
    )
}
"""The strategies of the matrix."""


@dataclass(frozen=True)
class Feature:
    """A feature of a run."""

    name: str
    layer: Layer | None = None  # What happens to the values of the objective.
    # Options of `minimize` for a kind of strategy, and a source of random numbers.
    options: Callable[[Kind, random.Random], dict[str, Any]] = field(default=lambda k, r: {})
    without: tuple[str, ...] = ()  # Features that it cannot be combined with.
    bounded: bool = True  # Whether algorithms for boxes support it.
    costly: bool = False  # Whether a trial takes a second or more, since it starts processes.
    kinds: tuple[str, ...] = ()  # The kinds of strategies that know it, where not all do.
    excess: float = 0.0  # By how much it raises the value at the optimum.
    neutral: str = ""  # An option of how candidates are evaluated, which must not change a run.


def _budget(kind: Kind, drawn: random.Random) -> dict[str, Any]:
    return {"max_evaluations": max(drawn.randint(1, 3) * kind.generation + drawn.randint(-2, 2), 1)}


def _replicas(kind: Kind, drawn: random.Random) -> dict[str, Any]:
    from mmes.replicas import Local

    return {"workers": Local(1)}


# The constrained variable is at least this, and apart from the optimum by the second number.
_LEAST, _APART = 0.75, 0.5


def too_small(x: Any) -> float:
    """Return by how much the third variable is smaller than the constraint asks for."""
    return _LEAST - float(x[2])


def numbered(generation: int) -> int:
    """Return the batch of a generation."""
    return generation


_HELD_OUT = 0.05


def held_out(x: Any) -> float:
    """Return the validation loss of a point, whose optimum is that of the objective."""
    return sphere(x) + _HELD_OUT


FEATURES: dict[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature("failures", Fails()),
        Feature("inf region", Forbidden()),
        Feature("caught", Raises(), lambda k, r: {"catch": (ArithmeticError,)}),
        Feature("noise", Noise()),
        Feature("ties", Ties()),
        Feature("target", options=lambda k, r: {"target": 0.1 * k.n}),
        Feature("budget", options=_budget),
        Feature("restarts", options=lambda k, r: {"restarts": 2}),
        Feature("x0", options=lambda k, r: {"evaluate_x0": True}),
        Feature("bounds", options=lambda k, r: {"bounds": BOX}),
        Feature("workers", options=lambda k, r: {"workers": 2}, costly=True, neutral="workers"),
        Feature(
            "replicas",
            options=_replicas,
            without=("workers",),
            bounded=False,
            costly=True,
            neutral="workers",
        ),
        Feature(
            "device",
            options=lambda k, r: {"device": "cpu"},
            without=("workers", "replicas"),
            bounded=False,
        ),
        Feature("resume"),
        Feature("grow", without=("restarts", "workers", "replicas", "x0"), bounded=False),
        Feature(
            "constraints",
            options=lambda k, r: {"constraints": [too_small]},
            without=("grow",),
            bounded=False,
            excess=_APART**2,
        ),
        Feature(
            "integers",
            options=lambda k, r: {"integers": [3]},
            without=("device",),
            bounded=False,
            excess=0.25**2,
        ),
        Feature(
            "few rows",
            options=lambda k, r: {"rows_at_once": r.randint(1, 3)},
            without=("integers",),
            kinds=("auto large", "mmes"),
            neutral="rows_at_once",
        ),
        Feature("probes", options=lambda k, r: {"step_size": "probes"}, kinds=("auto large",)),
        Feature(
            "batches",
            options=lambda k, r: {"batches": numbered, "stagnation_window": "off"},
            without=("target", "restarts", "grow", "constraints"),
            kinds=("auto small", "auto large"),
        ),
        Feature(
            "validation",
            options=lambda k, r: {"validation": held_out, "validation_every": r.randint(1, 7)},
            without=("grow", "constraints"),
            excess=_HELD_OUT,
        ),
    )
}
"""The features of the matrix."""

Features = tuple[Feature, ...]


def fits(kind: Kind, chosen: Features) -> bool:
    """Return whether the features can be combined with each other and with the kind."""
    names = {feature.name for feature in chosen}
    together = not any(names & set(feature.without) for feature in chosen)
    known = all(not feature.kinds or kind.name in feature.kinds for feature in chosen)
    return together and known and (not kind.bounded or all(feature.bounded for feature in chosen))


def combinations(size: int = 2) -> Iterator[tuple[Kind, Features]]:
    """Yield every valid combination of `size` features with every kind."""
    for chosen in itertools.combinations(FEATURES.values(), size):
        for kind in KINDS.values():
            if fits(kind, chosen):
                yield kind, chosen


def trials(kind: Kind, chosen: Features, seed: int, folder: Path) -> Iterator[Trial]:
    """Run a combination and yield its trials: one run, or two if it was interrupted.

    A run with workers, replicas or few rows is compared with the run without them. The seed is that
    of everything random; the folder is empty.
    """
    before = living()
    for trial in _trials(kind, chosen, seed, folder):
        yield replace(trial, before=before)


def _trials(kind: Kind, chosen: Features, seed: int, folder: Path) -> Iterator[Trial]:
    drawn = random.Random(f"{seed} {kind.name} {[feature.name for feature in chosen]}")
    names = {feature.name for feature in chosen}
    options = _options(kind, chosen, drawn)
    box = options.get("bounds")
    layers = tuple(feature.layer for feature in chosen if feature.layer is not None)
    optimum = sum(feature.excess for feature in chosen)
    objective = Watched(str(folder / "calls"), layers, box, optimum)
    work = folder / "work"
    work.mkdir()
    if "grow" in names:
        whole = _grown(kind, objective, options, breaks=False)
        yield _judged(whole, objective, options, ())
        if not objective.noisy:
            again = replace(objective, file=str(folder / "again"))
            yield _judged(_grown(kind, again, options, breaks=True), again, options, (), whole[0])
        return
    plain = _recorded(lambda: minimize(objective, **options))
    neutral = {feature.neutral for feature in chosen} - {""}
    twin = None
    if neutral and not objective.noisy:
        other = replace(objective, file=str(folder / "other"))
        simple = {name: value for name, value in options.items() if name not in neutral}
        simple["strategy"] = plain[0].strategy.split()[0]  # with replicas "auto" takes another
        twin = _recorded(lambda: minimize(other, **simple))[0]
    yield replace(_judged(plain, objective, options, plain[1], twin), folder=work)
    if "resume" in names:
        yield _resumed(objective, options, drawn, folder, plain[0])


def _options(kind: Kind, chosen: Features, drawn: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {
        "x0": np.full(kind.n, 1.0),
        "sigma0": 0.5,
        "seed": drawn.randrange(1000),
        "strategy": kind.strategy,
        "max_evaluations": (90 if kind.n < 10 else 50) * kind.generation,
        "evaluate_x0": False,
    }
    if kind.bounded:
        options["bounds"] = BOX
    else:
        # So that short runs end by themselves, too.
        options |= {"stagnation_window": 20, "xtol": 1e-2}
    for feature in chosen:
        options |= feature.options(kind, drawn)
    if "bounds" in options:
        options["x0"][0] = BOX[0]
    return options


Recorded = tuple[Any, tuple[type[Warning], ...]]


def _recorded(run: Callable[[], Any]) -> Recorded:
    """Return what a call returns, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run()
    return result, tuple(warning.category for warning in caught)


def _judged(
    run: Recorded,
    objective: Watched,
    options: dict[str, Any],
    warned: tuple[type[Warning], ...],
    twin: Any = None,
) -> Trial:
    return Trial(run[0], objective.seen(), objective, options, warned, twin)


def _resumed(
    objective: Watched, options: dict[str, Any], drawn: random.Random, folder: Path, whole: Any
) -> Trial:
    """Interrupt the run at some call, resume from its checkpoint, and compare."""
    at = drawn.randrange(max(objective.seen().calls, 1))
    path = folder / "work" / "run.mmes"
    broken = replace(objective, file=str(folder / "broken"), layers=(Breaks(at), *objective.layers))
    rest = replace(objective, file=str(folder / "rest"))
    code = ("catch", "workers", "constraints", "batches", "validation")
    free = {name: options[name] for name in code if name in options}

    def run() -> Any:
        try:
            minimize(broken, checkpoint=path, **options)
        except EvaluationError as error:
            if not isinstance(error.__cause__, Broken):
                raise
            before: Any = error.result  # type: ignore[attr-defined]
            # A run that breaks at its end, after an incomplete generation, makes that once more.
            repeated = before.nfev - checkpoint.read(path)[0]["evaluations"]
            return before, repeated, resume(path, rest, **free)
        return None, 0, minimize(rest, **options)  # noise led it elsewhere, and it ended before

    (before, repeated, result), warned = _recorded(run)
    seen = rest.seen(skipped=repeated)
    if before is not None:
        seen = Seen(
            calls=seen.calls + before.nfev,
            failed=seen.failed + before.failed,
            outside=seen.outside + broken.seen().outside,
            lowest=min(seen.lowest, before.best_seen),
            batches=seen.batches,
        )
    twin = None if objective.noisy else whole
    kept = ("run.mmes", "run.mmes.previous")
    return Trial(result, seen, objective, options, warned, twin, folder / "work", kept)


# How often the population grows before which generation.
_GROWTH = {1: 2, 3: 1}


def _grown(
    kind: Kind, objective: Watched, options: dict[str, Any], breaks: bool
) -> tuple[Any, tuple[type[Warning], ...]]:
    """Ask and tell with `grow` twice; with breaks, as a copy, a pickle and a restored state."""
    others = ("max_evaluations", "target", "evaluate_x0", "strategy", "catch")
    given = {name: value for name, value in options.items() if name not in others}
    name = options["strategy"]
    if name == "auto":
        name = "adaptive" if kind.n > 100 or "device" in options else "active-cma"
    es = get_strategy(name)(**given)
    limits = {"target": options.get("target"), "max_evaluations": options["max_evaluations"]}
    for generation in range(14):
        for _ in range(_GROWTH.get(generation, 0)):
            es.grow()
        if breaks and generation % 3 == 1:
            es = pickle.loads(pickle.dumps(es))
        if breaks and generation % 3 == 2:
            es = type(es).from_state(es.state(), device=given.get("device"))
        if es.stop(**limits):
            break
        es.tell([_caught(objective, x) for x in es.ask()])
    reason = es.stop(**limits) or StopReason.MAX_GENERATIONS
    return SimpleNamespace(
        x=es.best_x,
        mean=es.mean,
        fun=es.best_value,
        best_seen=es.best_value,
        nfev=es.evaluations,
        nit=es.generation,
        failed=es.failed_evaluations,
        sigma=es.sigma,
        reason=reason,
        success=False,
    ), ()


def _caught(objective: Watched, x: Any) -> float:
    try:
        return objective(x)
    except ArithmeticError:
        return math.nan
