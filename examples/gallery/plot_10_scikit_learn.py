"""
Can I tune a scikit-learn model with it?
========================================

Yes, and no adapter is needed: write the cross-validation as a function. Two examples show what to
expect.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

import mmes

# %%
# Weights of 30 features for k nearest neighbours, by cross-validation. The score rises, but not on
# held-out data: a search over many weights overfits the folds.

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
train, test, y_train, y_test = train_test_split(X, y, random_state=0)


def error(weights):
    """Return the share of mistakes in cross-validation with weighted features."""
    return 1 - cross_val_score(KNeighborsClassifier(), train * weights, y_train).mean()


r = mmes.minimize(error, np.ones(30), 0.3, bounds=(0.0, 3.0), max_evaluations=150, seed=1)
for name, weights in (("all equal", np.ones(30)), ("weighted", r.x)):
    model = KNeighborsClassifier().fit(train * weights, y_train)
    print(
        f"{name}: cross-validation {1 - error(weights):.3f}, "
        f"held back {model.score(test * weights, y_test):.3f}"
    )

# %%
# All weights of a fitted network, through ``coefs_`` and ``intercepts_``. The loss on the training
# data goes to zero; only held-out data can tell whether this is learning or overfitting.

X, y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
train, test, y_train, y_test = train_test_split(X, y, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    net = MLPClassifier((24, 12), max_iter=3, random_state=0).fit(train, y_train)
arrays = net.coefs_ + net.intercepts_
sizes = np.cumsum([a.size for a in arrays])


def write(x):
    """Write a vector into the network."""
    for array, part in zip(arrays, np.split(x, sizes[:-1]), strict=True):
        array[...] = part.reshape(array.shape)


def log_loss(x):
    """Return the loss on the training data."""
    write(x)
    chances = net.predict_proba(train)[np.arange(len(y_train)), y_train]
    return -np.mean(np.log(np.maximum(chances, 1e-300)))


start = np.concatenate([a.ravel() for a in arrays])
before = net.score(test, y_test)
r = mmes.minimize(log_loss, start, 0.1, max_evaluations=6000, target=1e-6, seed=1)
write(r.x)
print(f"{start.size} weights: loss {log_loss(start):.2f} to {r.fun:.1e}")
write(r.x)
print(f"held back: {before:.3f} to {net.score(test, y_test):.3f}")

# %%
# The loss on the training data against the evaluations.

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.semilogy(r.history["evaluations"], r.history["best"])
axes.set(xlabel="evaluations", ylabel="loss on the training data")
