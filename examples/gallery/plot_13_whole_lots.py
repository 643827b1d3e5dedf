"""
How do I optimise whole numbers?
================================

A portfolio of 30 shares is bought in whole lots. The risk should be small, the expected return at
least 6 %, and the cost within the budget: integers with two constraints.
"""

import matplotlib.pyplot as plt
import numpy as np

import mmes

SHARES, MONEY = 30, 100_000.0
rng = np.random.default_rng(4)
PRICES = rng.uniform(300.0, 3_000.0, SHARES)  # of a lot
RETURNS = rng.uniform(0.01, 0.12, SHARES)
FACTORS = rng.normal(size=(SHARES, 3)) * RETURNS[:, None]  # what pays more is riskier
RISK = FACTORS @ FACTORS.T + np.diag((1.5 * RETURNS) ** 2)


def risk(lots):
    """Return the standard deviation of the yearly return, in per cent of the money."""
    held = lots * PRICES / MONEY
    return 100 * np.sqrt(np.einsum("...i,ij,...j->...", held, RISK, held))


def limits(lots):
    """Return what must not be positive: the return that is lacking, what is spent too much."""
    held = lots * PRICES / MONEY
    return np.stack((0.06 - held @ RETURNS, held.sum(axis=-1) - 1.0), axis=-1)


# %%
# `integers=True`: all variables are integers. From 0 to 20 lots of each share can be bought.

r = mmes.minimize(
    risk,
    bounds=(np.zeros(SHARES), 20.0),
    constraints=limits,
    integers=True,
    vectorized=True,
    max_evaluations=40_000,
    seed=1,
)
lacking, over = limits(r.x)
print(f"risk {r.fun:.3f} %, return {100 * (0.06 - lacking):.2f} %, money left {-over * MONEY:.0f}")

figure, axes = plt.subplots(figsize=(8, 2.6), layout="constrained")
axes.bar(np.arange(SHARES), r.x, color="tab:blue")
axes.set(xlabel="share", ylabel="lots", xlim=(-0.6, SHARES - 0.4))
