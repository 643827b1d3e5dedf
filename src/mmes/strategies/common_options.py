"""The options that every strategy has."""

from __future__ import annotations

from mmes.boxes import BOXES
from mmes.kernels import KERNELS
from mmes.options import Option
from mmes.randomness import SEED_LIMIT

COMMON_OPTIONS = (
    Option(
        "seed",
        int,
        "Seed of all random numbers; None takes a fresh one, which the result records.",
        default_text="fresh",
        low=0,
        high=SEED_LIMIT - 1,
    ),
    Option(
        "bounds_handling",
        str,
        "How the points of the search become points of the box: by a smooth map that is the "
        "identity inside, by clipping onto the wall, or by reflection at it.",
        default="clip",
        choices=BOXES.keys(),
    ),
    Option(
        "sigma_min",
        float,
        "Stop when the mutation strength falls to this.",
        default_text="1e-20 sigma0",
        low=0,
    ),
    Option(
        "sigma_max",
        float,
        "Stop when the mutation strength grows to this.",
        default_text="1e20 sigma0",
        low=0,
        low_open=True,
    ),
    Option(
        "stagnation_window",
        int,
        "Generations over which the best value must improve; 'off' never stops for stagnation.",
        default_text="n, at least 200",
        low=1,
        choices=("off",),
    ),
    Option(
        "stagnation_tolerance",
        float,
        "Relative improvement a generation below which a run counts as stagnated.",
        default=1e-8,
        low=0,
    ),
    Option(
        "kernel",
        str,
        "Native (C++) or reference (numpy) kernel; 'auto' takes the best there is.",
        default="auto",
        choices=("auto", *KERNELS),
    ),
    Option(
        "threads",
        int,
        "Threads of the native kernel; no result depends on it.",
        default_text="the variable MMES_THREADS; 1, or all cores for large generations",
        low=1,
    ),
)
