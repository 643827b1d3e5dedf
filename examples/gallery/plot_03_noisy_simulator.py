"""
What do I do with a noisy simulator?
====================================

Nothing special: a run detects that its objective is noisy, increases the population, and reports an
average. A random simulation returns a different value each time, so the best value that was ever
observed is a lucky one. Do not rely on it.
"""

import matplotlib.pyplot as plt
import numpy as np

import mmes

N = 40
RATES = np.linspace(0.5, 2.0, N)
dice = np.random.default_rng(5)


def true_cost(speeds):
    """Return the cost of running N machines at these speeds: energy, and waiting."""
    return np.sum(speeds**2 + RATES / np.maximum(speeds, 0.05), axis=-1)


def simulated_cost(speeds):
    """Return the cost as a simulation sees it: with a standard error of 5 %."""
    exact = true_cost(speeds)
    return exact * (1 + 0.05 * dice.standard_normal(np.shape(exact)))


# %%
# A callback records what the run cannot see: the true cost of its best point and of the centre of
# its search.

watched = []


def watch(progress):
    """Note the true cost of the best point and of the mean."""
    lucky, centre = true_cost(np.array([progress.best_x, progress.mean]))
    watched.append((progress.evaluations, progress.best_value, lucky, centre))


r = mmes.minimize(
    simulated_cost,
    np.full(N, 2.0),
    0.3,
    vectorized=True,
    max_evaluations=40_000,
    callback=watch,
    seed=1,
)
optimum = true_cost((RATES / 2) ** (1 / 3))
print(f"noisy: {r.noisy}; cost {r.fun:.2f} with a standard error of {r.fun_std:.2f}")
print(f"true cost {true_cost(r.x):.2f}; the best that is possible is {optimum:.2f}")
print(f"luckiest value observed: {r.best_seen:.2f}")

# %%
# The best observed value falls below the optimum, which is impossible; the true cost of that point
# does not. The mean is the better answer, and the run returned it.

# The last call, with the numbers of the result, is omitted.
evaluations, observed, lucky, centre = np.array(watched[:-1]).T
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.plot(evaluations, observed, color="lightgray", lw=2, label="best value observed")
axes.plot(evaluations, lucky, color="tab:orange", lw=1, label="true cost of that point")
axes.plot(evaluations, centre, color="tab:blue", label="true cost of the mean")
axes.axhline(optimum, color="black", ls=":", lw=1, label="optimum")
axes.set(xlabel="evaluations", ylabel="cost", ylim=(0.75 * optimum, 1.4 * optimum))
axes.legend(frameon=False)
