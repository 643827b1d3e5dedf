"""A JAX loss of a pytree as a vectorized objective.

>>> import mmes, jax.numpy as jnp
>>> from mmes.integrations.jax import batched
>>> params = {"w": jnp.ones((3, 2)), "b": jnp.ones(2)}
>>> f = batched(lambda p: jnp.sum(p["w"] ** 2) + jnp.sum(p["b"] ** 2), like=params)
>>> r = mmes.minimize(f, f.x0, 0.1, vectorized=True, max_evaluations=1000, seed=1)
>>> best = f.unravel(r.x)
>>> bool(jnp.abs(best["w"]).max() < 0.1)
True
"""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.extras import missing
from mmes.integrations.precision import SmallSteps
from mmes.strategies.parts.population import default_population_size

try:
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree
except ImportError as error:
    raise missing("jax", "jax") from error

__all__ = ["Batched", "batched"]


class Batched:
    """A loss of a pytree as an objective for ``minimize(..., vectorized=True)``.

    It is compiled for all candidates of a generation.

    Parameters
    ----------
    loss : callable
        Takes a pytree with the structure of `like` and returns one number; `jax.jit` and `jax.vmap`
        must be able to trace it.
    like : pytree of arrays
        The parameters: their shapes, their type, and the start point `x0`.
    rows : int, optional
        Batch size; by default that of a default generation, or the largest batch so far. Smaller
        batches are padded, because JAX compiles again for every size: the start point is evaluated
        alone, the first generation of MMES has one more candidate, the last one may have fewer.

    Attributes
    ----------
    x0 : ndarray
        The pytree `like` as one vector in float64.
    n : int
        The number of variables.
    """

    def __init__(self, loss: Callable[[Any], Any], like: Any, rows: int | None = None):
        if rows is not None and (not isinstance(rows, int) or rows < 1):
            raise ValueError(f"rows must be an integer >= 1, not {rows!r}")
        for leaf in jax.tree_util.tree_leaves(like):
            kind = jnp.asarray(leaf).dtype
            if not jnp.issubdtype(kind, jnp.floating):
                raise ValueError(f"like must contain real floating-point numbers, not {kind}")
        start, unravel = ravel_pytree(like)
        if start.size == 0:
            raise ValueError("like contains no numbers: nothing to minimise")
        self.x0: NDArray[np.float64] = np.array(start, dtype=np.float64)
        self.n = self.x0.size
        self._unravel = unravel
        self._kind = start.dtype
        self._fixed_rows = rows
        self._rows = rows or 0
        self._loss = jax.jit(jax.vmap(lambda x: loss(unravel(x))))
        self._small_steps = SmallSteps(
            float(jnp.finfo(self._kind).eps),
            str(self._kind),
            'jax.config.update("jax_enable_x64", True) before anything else gives more digits',
        )

    def unravel(self, x: Any) -> Any:
        """Return a vector as a pytree with the structure of `like`."""
        return self._unravel(jnp.asarray(x, dtype=self._kind))

    def __call__(self, points: Any) -> NDArray[np.float64]:
        """Return the loss of each row."""
        points = np.asarray(points)
        self._small_steps.look(points)
        count = points.shape[0]
        if self._fixed_rows is None:
            # The start point comes alone, before the first generation.
            self._rows = max(self._rows or default_population_size(self.n), count)
        parts = [self._padded(points[at : at + self._rows]) for at in range(0, count, self._rows)]
        return np.concatenate(parts)

    def _padded(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """Return the values of at most `_rows` points, computed as a batch of `_rows`."""
        count = points.shape[0]
        if count < self._rows:
            filler = np.broadcast_to(points[:1], (self._rows - count, self.n))
            points = np.concatenate([points, filler])
        # A copy in the tree's own format; DLPack does not take numpy's read-only arrays.
        values = self._loss(jnp.asarray(points, dtype=self._kind))
        return np.asarray(values, dtype=np.float64)[:count]


batched = Batched
