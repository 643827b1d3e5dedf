"""
How do I optimise under a constraint?
=====================================

A cantilever of 60 bars carries a load at its tip. Its weight should be small, and the tip must not
sink by more than a given amount. The limit is a constraint, so there is no penalty weight to tune.
"""

import matplotlib.pyplot as plt
import numpy as np

import mmes

# Twelve bays of a height of 1: an upper and a lower chord, verticals, and two diagonals per bay.
BAYS, LIMIT, LOWEST = 12, 60.0, 0.02
NODES = np.array([(x, y) for x in range(BAYS + 1) for y in (0.0, 1.0)])
BARS = [(2 * k + side, 2 * k + 2 + side) for k in range(BAYS) for side in (0, 1)]
BARS += [(2 * k, 2 * k + 3) for k in range(BAYS)] + [(2 * k + 1, 2 * k + 2) for k in range(BAYS)]
BARS += [(2 * k, 2 * k + 1) for k in range(1, BAYS + 1)]
START, END = NODES[[a for a, _ in BARS]], NODES[[b for _, b in BARS]]
LENGTHS = np.linalg.norm(END - START, axis=1)
FREE = np.arange(4, 2 * len(NODES))  # the first two nodes are fixed


def _directions():
    rows = np.zeros((len(BARS), 2 * len(NODES)))
    for bar, (a, b) in enumerate(BARS):
        along = (NODES[b] - NODES[a]) / LENGTHS[bar]
        rows[bar, 2 * a : 2 * a + 2], rows[bar, 2 * b : 2 * b + 2] = -along, along
    return rows[:, FREE]


DIRECTIONS = _directions()
LOAD = np.zeros(FREE.size)
LOAD[-3] = -1.0  # at the lower node of the tip, downwards


def simulate(areas):
    """Return the weight, and how much farther than allowed the tip sinks: one simulation."""
    stiffness = DIRECTIONS.T * (areas / LENGTHS) @ DIRECTIONS
    sinks = -np.linalg.solve(stiffness, LOAD)[-3]
    return float(LENGTHS @ areas), sinks / LIMIT - 1.0


# %%
# One simulation computes the weight and the constraint, so the objective returns both. Bounds set a
# minimum area for every bar.

r = mmes.minimize(
    simulate,
    bounds=(np.full(len(BARS), LOWEST), 60.0),
    returns_constraints=True,
    max_evaluations=20_000,
    seed=1,
)
print(f"weight {r.fun:.2f}, violation {r.constraint_violation:.1e}")
print(f"one unit of the limit is worth {r.multipliers[0]:.1f} units of weight")

# %%
# The line widths show the areas of the bars. For comparison: bars of equal area with the same
# deflection.

even = 1.0 + simulate(np.ones(len(BARS)))[1]
print(f"bars of one area: weight {even * LENGTHS.sum():.2f}")

figure, axes = plt.subplots(figsize=(8, 2), layout="constrained")
for area, a, b in zip(r.x, START, END, strict=True):
    axes.plot(*zip(a, b, strict=True), color="tab:blue", lw=8 * np.sqrt(area / r.x.max()))
axes.annotate("load", END[-1] - (0, 1), END[-1] - (0, 1.8), arrowprops={"arrowstyle": "<-"})
axes.set(aspect="equal", ylim=(-0.9, 1.3))
axes.axis("off")
