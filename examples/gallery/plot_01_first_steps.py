"""
How do I minimise a function of a thousand variables?
=====================================================

With one call. The function may be anything that turns a vector into a number; no gradient is
needed. Here a thousand points should lie on a curve, and some are pulled harder than others.
"""

import matplotlib.pyplot as plt
import numpy as np

import mmes

N = 1000
GOAL = np.sin(np.linspace(0, 6, N))


def energy(X):
    """Return one value per row of X: the squared distance from the curve, weighted."""
    stiffness = np.linspace(1, 10, N)
    return np.sum(stiffness * (X - GOAL) ** 2, axis=-1)


# %%
# The third argument is the mutation strength: about a third of the distance within which the
# optimum is expected. With ``vectorized=True`` the function gets all candidates of a generation in
# one call, one per row, which is faster if numpy can work on whole arrays.

r = mmes.minimize(energy, np.zeros(N), 0.5, vectorized=True, target=1e-6, seed=1)
print(r.fun, r.nfev, r.message)

# %%
# The result has a history. Left: the best value against the evaluations; a straight line on this
# scale means that every further digit costs the same. Right: the curve, and what was found.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.semilogy(r.history["evaluations"], r.history["best"], color="tab:blue")
left.set(xlabel="evaluations", ylabel="best value", title="convergence")
right.plot(GOAL, color="lightgray", lw=5, label="optimum")
right.plot(r.x, color="tab:blue", lw=1, label="found")
right.set(xlabel="variable", title=f"{N} variables")
right.legend(frameon=False)
