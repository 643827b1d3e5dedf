"""Runs a strategy on a suite of COCO, the benchmark platform for black-box optimizers.

``mmes coco bbob-largescale --dim 20,40 --budget 1000`` from the command line. ``python -m cocopp
FOLDER`` reads the output.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mmes.base.extras import missing
from mmes.base.randomness import child_seed
from mmes.minimize import minimize
from mmes.spaces.start import SIGMA_SHARE_OF_BOX
from mmes.strategies import get_strategy, is_auto

try:
    import cocoex
except ImportError as error:
    raise missing("cocoex", "coco") from error

__all__ = ["Experiment", "arguments_for", "run_experiment"]


@dataclass(frozen=True)
class Experiment:
    """What is to be run.

    Attributes
    ----------
    suite : str
        A suite of COCO, for example ``"bbob-largescale"``.
    dimensions, functions, instances : sequence of int, optional
        The part of the suite; by default all of it.
    budget : float
        Evaluations per problem, as a multiple of its number of variables.
    strategy : str, optional
        The strategy; by default that of `mmes.minimize`.
    name : str, optional
        The algorithm's name in the data; by default the strategy's.
    seed : int
        The seed, from which the seed of every problem is derived.
    batch : tuple of int
        (i, k): the i-th of k parts of the problems, i from 1 to k.
    """

    suite: str
    dimensions: Sequence[int] = ()
    functions: Sequence[int] = ()
    instances: Sequence[int] = ()
    budget: float = 100.0
    strategy: str | None = None
    name: str | None = None
    seed: int = 1
    batch: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        known = list(cocoex.known_suite_names)
        if self.suite not in known:
            raise ValueError(f"there is no suite {self.suite!r}; COCO has {', '.join(known)}")
        if not self.budget > 0:
            raise ValueError(f"budget must be a number > 0, not {self.budget!r}")
        part, parts = self.batch
        if not 1 <= part <= parts:
            raise ValueError(f"batch must be (i, k) with 1 <= i <= k, not {self.batch!r}")

    @property
    def label(self) -> str:
        """The name of the algorithm in the data."""
        return self.name or f"mmes-{self.strategy or 'default'}"

    @property
    def folder(self) -> str:
        """The name of the folder of the data."""
        part, parts = self.batch
        one_of = "" if parts == 1 else f"-batch{part:0{len(str(parts))}}of{parts}"
        plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in self.label)
        return f"{plain}-on-{self.suite}{one_of}"

    @property
    def selection(self) -> str:
        """The part of the suite in COCO's syntax."""
        chosen = {
            "dimensions": self.dimensions,
            "function_indices": self.functions,
            "instance_indices": self.instances,
        }
        return " ".join(
            f"{word}: {','.join(map(str, numbers))}" for word, numbers in chosen.items() if numbers
        )


def run_experiment(experiment: Experiment, out: str | os.PathLike[str]) -> Path:
    """Run an experiment and return the folder of its data.

    COCO always writes below the current folder, so a child process runs in `out`. Its lines, one
    per problem, go to stderr.

    Parameters
    ----------
    experiment : Experiment
        What is to be run.
    out : str or path
        The folder for the results; made if it does not exist.

    Returns
    -------
    Path
        The folder that COCO wrote, below `out`.
    """
    place = Path(out).resolve()
    place.mkdir(parents=True, exist_ok=True)
    settings = asdict(experiment)
    file, colon, name = (experiment.strategy or "").rpartition(":")
    if file.endswith(".py"):
        settings["strategy"] = f"{Path(file).resolve()}{colon}{name}"
    settings = json.dumps(settings)
    command = [sys.executable, "-m", "mmes.lab.coco", settings, os.getcwd()]
    done = subprocess.run(command, cwd=place, stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        raise RuntimeError(lines[-1] if lines else f"COCO ended with status {done.returncode}")
    return place / lines[-1]


def _work(experiment: Experiment) -> str:
    """Run all problems in the current folder; return where COCO wrote."""
    boxed = experiment.suite == "bbob-boxed"
    _refuse_missing(experiment)
    _refuse_boxless(experiment, boxed)
    suite = cocoex.Suite(experiment.suite, "", experiment.selection)
    observer = cocoex.Observer(
        experiment.suite,
        f"result_folder: {experiment.folder} algorithm_name: {experiment.label} "
        f'algorithm_info: "seed {experiment.seed}"',
    )
    part, parts = experiment.batch
    # Every k-th, so that each batch has some of every dimension.
    for index in range(part - 1, len(suite), parts):
        problem = suite.get_problem(index)
        if problem.number_of_objectives > 1:
            raise ValueError(
                f"the suite {experiment.suite} has problems with several objectives, which are not "
                "supported"
            )
        problem.observe_with(observer)
        given = arguments_for(problem, boxed)
        if experiment.strategy is not None:
            given["strategy"] = experiment.strategy
        result = minimize(
            problem,
            max_evaluations=max(1, int(experiment.budget * problem.dimension)),
            callback=lambda progress, problem=problem: problem.final_target_hit,
            seed=child_seed(experiment.seed, problem.index),
            **given,
        )
        hit = "target hit" if problem.final_target_hit else f"best {result.fun:.6g}"
        print(f"{problem.id}: {problem.evaluations:,} evaluations, {hit}", file=sys.stderr)
        problem.free()
    return observer.result_folder


def arguments_for(problem: Any, boxed: bool = False) -> dict[str, Any]:
    """Return the arguments of `mmes.minimize` for a problem of COCO; `boxed` says to keep its box.

    Integers come first in a problem, and have a box in any case.
    """
    box = problem.lower_bounds, problem.upper_bounds
    integers = problem.number_of_integer_variables
    given: dict[str, Any] = {
        "x0": problem.initial_solution_proposal(0),
        # Not COCO's proposals, which come from numpy's global generator.
        "restarts": "unlimited",
    }
    if boxed or integers:
        given["bounds"] = box
    if integers:
        given["integers"] = range(integers)
    else:
        given["sigma0"] = SIGMA_SHARE_OF_BOX * float((box[1] - box[0]).mean())
    if problem.number_of_constraints:
        given["constraints"] = problem.constraint
    return given


def _refuse_missing(experiment: Experiment) -> None:
    # COCO runs all of a suite where nothing of a selection is in it. Along one axis of the suite,
    # since to make all of it takes seconds.
    def along(**chosen: int) -> Any:
        words = " ".join(f"{word}: {number}" for word, number in chosen.items())
        return cocoex.Suite(experiment.suite, "", words)

    dimensions = list(along(function_indices=1, instance_indices=1).dimensions)
    functions = len(along(dimensions=dimensions[0], instance_indices=1))
    instances = len(along(dimensions=dimensions[0], function_indices=1))
    for word, asked, held, shown in (
        ("dimensions", experiment.dimensions, dimensions, ", ".join(map(str, dimensions))),
        ("functions", experiment.functions, range(1, functions + 1), f"1 to {functions}"),
        ("instances", experiment.instances, range(1, instances + 1), f"1 to {instances}"),
    ):
        missing = ", ".join(str(number) for number in asked if number not in held)
        if missing:
            raise ValueError(
                f"{word} of the suite {experiment.suite} must be among {shown}, not {missing}"
            )


def _refuse_boxless(experiment: Experiment, boxed: bool) -> None:
    name = experiment.strategy
    if name is not None and not boxed and not is_auto(name) and get_strategy(name).needs_box:
        raise ValueError(
            f"the strategy {name!r} needs bounds, but the problems of the suite "
            f"{experiment.suite} have none; use bbob-boxed"
        )


def _child(arguments: Sequence[str]) -> int:
    settings, home = arguments
    sys.path.insert(0, home)  # the user's strategies
    wanted = json.loads(settings)
    wanted["batch"] = tuple(wanted["batch"])
    sys.stdout.flush()
    # COCO's own words go to stdout; the last line is ours.
    try:
        print("\n" + _work(Experiment(**wanted)))
    except (ValueError, TypeError, cocoex.exceptions.NoSuchSuiteException) as error:
        print(f"\n{error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_child(sys.argv[1:]))
