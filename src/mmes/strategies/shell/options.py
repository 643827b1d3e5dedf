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
        "Seed of all random numbers. With None a new one is drawn and recorded in the result.",
        default_text="drawn at random",
        low=0,
        high=SEED_LIMIT - 1,
        advice="from a numpy Generator take int(rng.integers(2**32))",
    ),
    Option(
        "bounds_handling",
        str,
        "How candidates are kept within the bounds: 'smooth' maps them by a smooth function, "
        "'clip' moves them to the bound, 'reflect' mirrors them at it.",
        default="smooth",
        choices=BOXES,
    ),
    Option(
        "xtol",
        float,
        "Stop when the steps are shorter than this fraction of the initial steps.",
        default=1e-11,
        low=0,
        high=1,
        high_open=True,
    ),
    Option(
        "ftol",
        float,
        "Stop when all values within a window of generations differ by at most this; 0 means up to "
        "rounding errors.",
        default=0.0,
        low=0,
    ),
    Option(
        "sigma_min",
        float,
        "Stop when the mutation strength falls to this value.",
        default_text="none",
        low=0,
        expert=True,
    ),
    Option(
        "sigma_max",
        float,
        "Stop when the mutation strength grows to this value.",
        default_text="steps of 1e20 sigma0",
        low=0,
        low_open=True,
        expert=True,
    ),
    Option(
        "stagnation_window",
        int,
        "Number of past generations that the stopping tests on values compare; the test for "
        "stagnation compares ten times as many. 'off' disables these tests.",
        default_text="n, at least 200",
        low=1,
        choices=("off",),
        expert=True,
    ),
    Option(
        "stagnation_tolerance",
        float,
        "Relative improvement per generation below which a run has stagnated; the rule behind the "
        "paper's tables.",
        default_text="off",
        low=0,
        expert=True,
    ),
    Option(
        "kernel",
        str,
        "Implementation of the vector operations: 'native' (C++), 'reference' (numpy), 'torch' or "
        "'triton' (on a device). 'auto' chooses the fastest that is available.",
        default="auto",
        choices=_KERNEL_NAMES,
        expert=True,
    ),
    Option(
        "threads",
        int,
        "Number of threads of the native kernel. It does not affect the result.",
        default_text="MMES_THREADS if it is set; else 1, or all cores for large generations",
        low=1,
        high=4096,
    ),
    Option(
        "device",
        str,
        "Device that holds the state and makes the candidates, as torch names it: 'cuda', "
        "'cuda:1', 'cpu'. Candidates are then tensors on it; otherwise they are numpy arrays.",
        default_text="the device of x0 if that is a tensor, otherwise none",
    ),
    Option(
        "population_dtype",
        str,
        "Floating-point type of the candidates on a device.",
        default_text="float32; float64 on the CPU",
        choices=("float32", "float64"),
        expert=True,
    ),
    Option(
        "mean_dtype",
        str,
        "Floating-point type of mean, path and scales on a device. With float32 a search ends when "
        "its steps are shorter than the spacing of float32 numbers at the mean.",
        default_text="float64",
        choices=("float32", "float64"),
        expert=True,
    ),
)
