"""Conversion of checkpoints of older formats to the current one."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmes.base.arrays import Arrays

_ARRAYS = {
    "search/search/archive": "search/search/archive_vectors",
    "search/search/stamps": "search/search/archive_stamps",
    "search/search/order": "search/search/archive_order",
}


def from_format_1(state: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """Return state and arrays of format 1 (version 0.1.0) in format 2 (version 0.2.0).

    Options were renamed; new options get the value that corresponds to the behaviour of 0.1.0.
    """
    if "search" not in state:
        return state, arrays  # not a run
    search, limits = dict(state["search"]), dict(state["limits"])
    lost = limits.pop("lost", "raise")
    limits = {"noise": "auto", "evaluate_x0": True, **limits}
    limits["on_lost"] = "nan" if lost == "fail" else lost
    handling = {"bounds_handling": "clip"} if "search/lower" in arrays else {}
    search["options"] = handling | _renamed(search["options"])
    search = {"doublings": 1, "first_spread": 1.0, **search}
    migrated = {
        "growth": state["start"],  # it doubled at restarts alone
        **state,
        "options": _renamed(state["options"]),
        "limits": limits,
        "search": search,
    }
    named = {_ARRAYS.get(name, name): array for name, array in arrays.items()}
    # It stored no values of generations: the tests on them start again.
    recent, extremes = "search/recent", "search/extremes"
    named.setdefault(recent, np.empty(0))
    known = named.get(extremes, np.array([np.inf, -np.inf, np.inf, -np.inf, 1.0]))
    return migrated, named | {extremes: np.append(known, -1.0)}


def _renamed(options: dict[str, Any]) -> dict[str, Any]:
    named = {"isotropic" if name == "noise" else name: value for name, value in options.items()}
    # Before there was a choice, AdaptiveMMES (which alone has `mirroring`) had the paired test, and
    # learnt the scales at a fixed rate.
    former = {"step_size": "paired", "scale_rate": "fixed"}
    return former | named if "mirroring" in named else named
