"""The kernel owns every vector: one whose arrays refuse every operation runs all strategies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mmes.kernels import KERNELS, ReferenceKernel
from mmes.strategies import STRATEGIES


class Sealed:
    """An array that only its kernel can look into; it tells its shape and nothing else."""

    __array_ufunc__ = None

    def __init__(self, inside: np.ndarray):
        self._inside = inside
        self.shape = inside.shape

    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        raise TypeError("this array belongs to the kernel")


def opened(value: Any) -> Any:
    if isinstance(value, Sealed):
        return value._inside
    if isinstance(value, tuple):
        inside = [opened(entry) for entry in value]
        return type(value)(*inside) if hasattr(value, "_fields") else tuple(inside)
    return value


class SealedKernel:
    """The reference kernel behind seals."""

    name = "sealed"
    gives_handles = frozenset(
        {"vector", "directions", "population", "from_host", "copy", "row", "part"}
        | {"noise_sum", "step_squares"}
    )

    def __init__(self) -> None:
        inner = ReferenceKernel()
        # Not by __getattr__: from Python 3.12 on isinstance with a protocol does not call it.
        for verb in dir(inner):
            if not verb.startswith("_") and verb != "name":
                setattr(self, verb, self._behind_seals(verb, getattr(inner, verb)))

    def _behind_seals(self, verb: str, inner: Any) -> Any:
        if not callable(inner):
            return inner

        def call(*arguments: Any, **named: Any) -> Any:
            found = inner(*map(opened, arguments), **{k: opened(v) for k, v in named.items()})
            return Sealed(found) if verb in self.gives_handles else found

        return call


@pytest.fixture
def sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KERNELS, "reference", lambda threads: SealedKernel())


def test_a_sealed_array_refuses() -> None:
    array = Sealed(np.zeros(3))
    for operation in (
        lambda: array + 1,
        lambda: np.sum(array),
        lambda: np.add(array, 1),
        lambda: array[0],
        lambda: float(array),
        lambda: len(array),
    ):
        with pytest.raises(TypeError):
            operation()


def walk(strategy: type, **options: Any) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Run some generations, through a saved state; return the candidates and the last state."""
    es = strategy(np.full(9, 2.0), 0.5, seed=4, kernel="reference", **options)
    seen = []
    for generation in range(40):
        points = np.array(es.ask())
        seen.append(points)
        es.tell((points**2).sum(1))
        es.stop()
        if generation == 20:
            es = strategy.from_state(es.state(), kernel="reference")
        if generation == 30:
            es.grow()
    assert np.isfinite(es.best_x).all()
    assert np.isfinite(es.mean).all()
    return seen, es.state()


HERE = {name: kind for name, kind in STRATEGIES.items() if not kind.search_type.on_host}


@pytest.mark.parametrize(
    "options", [{}, {"bounds": (-1.0, 3.0)}, {"scale": np.linspace(0.5, 2, 9)}]
)
@pytest.mark.parametrize("name", HERE)
def test_every_strategy_leaves_vectors_to_the_kernel(name, options, request) -> None:
    plain, state = walk(HERE[name], **options)
    request.getfixturevalue("sealed")
    behind_seals, other = walk(HERE[name], **options)
    for one, two in zip(plain, behind_seals, strict=True):
        np.testing.assert_array_equal(one, two)
    for key, array in state["arrays"].items():
        np.testing.assert_array_equal(array, other["arrays"][key])


def test_only_cma_es_works_on_the_host_alone() -> None:
    assert set(STRATEGIES) - set(HERE) == {"cma-es", "active-cma"}
