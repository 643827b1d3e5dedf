"""
How do I optimise a design within bounds?
=========================================

A beam of 60 segments is clamped at one end and carries a load at the other. Its mass should be
small, the tip must not sink by more than a given amount, and the height of each segment must be
between 1 and 12 cm. The heights have bounds; the limit on the deflection is a penalty.
"""

import matplotlib.pyplot as plt
import numpy as np

import mmes

SEGMENTS = 60
LENGTH = 3.0 / SEGMENTS  # metres
LOAD, YOUNG, WIDTH, LIMIT = 3e3, 210e9, 0.05, 0.03
ARM = LENGTH * (np.arange(SEGMENTS)[::-1] + 0.5)  # distance of each segment from the load


def deflection(heights):
    """Return how far the tip sinks, in metres."""
    inertia = WIDTH * heights**3 / 12
    return np.sum(LOAD * ARM**2 * LENGTH / (YOUNG * inertia), axis=-1)


def mass(heights):
    """Return the mass in kilograms."""
    return 7850 * WIDTH * LENGTH * np.sum(heights, axis=-1)


def cost(heights):
    """Return the mass, plus a penalty for what the tip sinks too far."""
    excess = np.maximum(deflection(heights) / LIMIT - 1, 0)
    return mass(heights) * (1 + 10 * excess)


# %%
# With bounds neither a start point nor a step size is needed: both follow from the box. The
# function is never evaluated outside.

r = mmes.minimize(
    cost,
    bounds=(np.full(SEGMENTS, 0.01), 0.12),
    vectorized=True,
    max_evaluations=60_000,
    seed=1,
)
print(f"mass {mass(r.x):.2f} kg, deflection {100 * deflection(r.x):.3f} cm of {100 * LIMIT} cm")

# %%
# The height of the best beam grows with the square root of the distance from the load,
# as far as the bounds (dotted) allow it. The figure shows it beside the best beam of one height.

uniform = (12 * np.sum(LOAD * ARM**2 * LENGTH) / (YOUNG * WIDTH * LIMIT)) ** (1 / 3)
print(f"one height of {100 * uniform:.2f} cm: {mass(np.full(SEGMENTS, uniform)):.2f} kg")

figure, axes = plt.subplots(figsize=(8, 2.6), layout="constrained")
place = np.arange(SEGMENTS) * LENGTH
axes.bar(place, 100 * r.x, width=LENGTH, align="edge", color="tab:blue", label="optimised")
axes.axhline(100 * uniform, color="tab:orange", label="one height")
axes.axhline(1, color="gray", ls=":", lw=1)
axes.axhline(12, color="gray", ls=":", lw=1)
axes.set(xlabel="distance from the clamp (m)", ylabel="height (cm)", xlim=(0, 3))
axes.legend(loc="lower left")
