"""Recorded values of the official code, and the points they belong to."""

import json
from pathlib import Path

import numpy as np
import pytest

GOLDEN = Path(__file__).parent / "golden"


def golden_functions(suite: str) -> dict[str, dict]:
    """Return the recorded functions by their registry names."""
    recorded = json.loads((GOLDEN / f"{suite}.json").read_text())
    named = {f"{suite}/{f}": each for f, each in recorded["functions"].items()}
    for f, each in recorded.get("functions_plain_ackley", {}).items():
        x_head = recorded["functions"][f]["x_head"]
        named[f"{suite}/{f}-plain"] = {**each, "x_head": x_head}
    return named


def hash_uniform(n: int, k: int) -> np.ndarray:
    """Return u(0, k) .. u(n-1, k) as the files' point formula defines them."""
    mask = (1 << 32) - 1
    values = np.empty(n)
    for i in range(n):
        a = ((i + 1) * 2654435761 + k * 2246822519) & mask
        a ^= a >> 15
        a = (a * 2246822519) & mask
        a ^= a >> 13
        a = (a * 3266489917) & mask
        a ^= a >> 16
        values[i] = (a + 0.5) / 2**32
    return values


def golden_point(label: str, problem, recorded: dict) -> np.ndarray:
    """Return the point of the given label for a problem."""
    low, high, n = recorded["lb"], recorded["ub"], recorded["dim"]
    match label:
        case "optimum":
            return problem.optimum
        case "zero":
            return np.zeros(n)
        case "quarter":
            return np.full(n, (low + high) / 2 + (high - low) / 4)
        case "fold_first":
            x = np.full(n, np.nan)
            for part in reversed(problem.batch.parts):
                x[part.index] = part.shift
            return x
        case _:
            x = low + (high - low) * hash_uniform(n, int(label.removeprefix("hash")))
            np.testing.assert_array_equal(x[:3], recorded["x_head"][label])
            return x


GOLDEN_FUNCTIONS = {**golden_functions("lsgo2010"), **golden_functions("lsgo2013")}


@pytest.fixture(params=GOLDEN_FUNCTIONS, scope="module")
def golden(request):
    """Give a problem, its points, the recorded values and the tolerances of the comparison."""
    from mmes import problems

    recorded = GOLDEN_FUNCTIONS[request.param]
    problem = problems.get(request.param)
    points = np.array([golden_point(label, problem, recorded) for label in recorded["values"]])
    return problem, points, np.array(list(recorded["values"].values())), recorded
