"""The options that every strategy has."""

from __future__ import annotations

from collections import ChainMap
from typing import Any

from mmes.base.options import Option
from mmes.base.randomness import SEED_LIMIT
from mmes.kernels import DEVICE_KERNELS, KERNELS
from mmes.spaces.boxes import BOXES

# One map of all, so that a kernel that is registered later is known.
_KERNEL_NAMES = ChainMap[str, Any](DEVICE_KERNELS, KERNELS, {"auto": None})


COMMON_OPTIONS = (
    Option(
        "seed",
        int,
        "Seed of all random numbers; None takes a fresh one, which the result records.",
        default_text="fresh",
        low=0,
        high=SEED_LIMIT - 1,
        advice="from a numpy Generator take int(rng.integers(2**32))",
    ),
    Option(
        "bounds_handling",
        str,
        "How the points of the search become points of the box: by a smooth map that is the "
        "identity inside, by clipping onto the wall, or by reflection at it.",
        default="smooth",
        choices=BOXES,
    ),
    Option(
        "xtol",
        float,
        "Stop when steps are shorter than this times the first ones.",
        default=1e-11,
        low=0,
    ),
    Option(
        "ftol",
        float,
        "Stop when all values of a window differ by at most this; 0 stands for rounding.",
        default=0.0,
        low=0,
    ),
    Option(
        "sigma_min",
        float,
        "Stop when the mutation strength falls to this.",
        default_text="none",
        low=0,
        expert=True,
    ),
    Option(
        "sigma_max",
        float,
        "Stop when the mutation strength grows to this.",
        default_text="1e20 sigma0",
        low=0,
        low_open=True,
        expert=True,
    ),
    Option(
        "stagnation_window",
        int,
        "Generations that the tests on values look back on; the test for stagnation looks back on "
        "ten times as many. 'off' never stops for these reasons.",
        default_text="n, at least 200",
        low=1,
        choices=("off",),
        expert=True,
    ),
    Option(
        "stagnation_tolerance",
        float,
        "Relative improvement per generation below which a run counts as stagnated, as in the "
        "paper's tables.",
        default_text="off",
        low=0,
        expert=True,
    ),
    Option(
        "kernel",
        str,
        "Native (C++) or reference (numpy) kernel, or torch operations on a device; 'auto' takes "
        "the best there is.",
        default="auto",
        choices=_KERNEL_NAMES,
        expert=True,
    ),
    Option(
        "threads",
        int,
        "Threads of the native kernel; no result depends on it.",
        default_text="the variable MMES_THREADS; 1, or all cores for large generations",
        low=1,
        high=4096,
    ),
    Option(
        "device",
        str,
        "Where the state lives and candidates are made, as torch names it: 'cuda', 'cuda:1', "
        "'cpu'. Candidates are then tensors there; without a device they are numpy arrays.",
        default_text="that of x0 where it is a tensor",
    ),
    Option(
        "population_dtype",
        str,
        "Precision of the candidates on a device.",
        default_text="float32, on the CPU float64",
        choices=("float32", "float64"),
        expert=True,
    ),
    Option(
        "mean_dtype",
        str,
        "Precision of mean, path and scales on a device. In float32 a search ends where its steps "
        "are shorter than the spacing of such numbers at the mean.",
        default_text="float64",
        choices=("float32", "float64"),
        expert=True,
    ),
)
