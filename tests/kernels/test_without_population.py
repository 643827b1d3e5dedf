"""Parents that are made again and added up: the same bits as with a population, in every kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mmes.kernels import (
    DrawnRows,
    Noise,
    RecombineCall,
    ReferenceKernel,
    SampleCall,
    StepLaw,
)
from mmes.kernels.choose import native_problem
from mmes.spaces.boxes import BOXES, Box, Start

SEED, GENERATION, ROWS = (3 << 41) + 17, 9, 7
DRAWN = DrawnRows(np.linspace(1 / 9, 1, 9), np.array([4, 2, 6, 0]), 4, 0.5)
EACH = np.linspace(0.1, 0.9, 6, dtype=np.float32)
INDICES = np.random.default_rng(2).integers(-1, ROWS, (6, 5))
FACTORS = np.random.default_rng(3).standard_normal((6, 5)).astype(np.float32)
LAWS = {
    "drawn": (StepLaw(0.8, drawn=DRAWN), False),
    "drawn, scaled": (StepLaw(0.8, drawn=DRAWN), True),
    "listed": (StepLaw(0.8, INDICES, FACTORS), False),
    "listed, all scaled": (StepLaw(0.8, INDICES, FACTORS, scale_rows=True), True),
    "student": (StepLaw(1.0, noise=Noise.STUDENT), False),
    "signs, each": (StepLaw(noise=Noise.RADEMACHER, isotropic_each=EACH, drawn=DRAWN), False),
}
# Best first: draws and mirror images, both members of some pairs, signed weights.
PARENTS = np.array([7, 0, 4, 6, 2, 8])
WEIGHTS = np.array([0.5, 0.3, 0.15, 0.05, -0.2, -0.4])


def hosts() -> list[Any]:
    """Return the kernels of the host; on a machine with a GPU there may be no native one."""
    found: list[Any] = [ReferenceKernel()]
    if native_problem() is None:
        from mmes.kernels.native import NativeKernel, simd_levels

        found += [NativeKernel(threads=t, simd=s) for s in simd_levels() for t in (1, 3)]
    return found


def boxes(n: int) -> list[Box | None]:
    """Return the boxes of which a search knows."""
    inner = [kind for kind in BOXES.values() if not kind.maps_points]
    start = Start(np.full(n, 0.2), 0.1)
    return [None, *(kind.around(np.full(n, -0.4), np.full(n, 0.9), start) for kind in inner)]


def moved(kernel: Any, n: int, law: StepLaw, box: Box | None, fused: bool, **kinds: Any) -> Any:
    """Return mean, path and archive after one step."""
    rng = np.random.default_rng(n)
    mean, path = (kernel.from_host(rng.standard_normal(n) / 4) for _ in range(2))
    archive = kernel.directions(ROWS, n, **kinds)
    kernel.assign(archive, rng.standard_normal((ROWS, n)).astype(np.float32))
    if law.scale is not None:
        law = law._replace(scale=kernel.from_host(law.scale))
    population = None if fused else kernel.population(9, n)
    sampling = SampleCall(population, 6, mean, 0.7, archive, law, box, SEED, GENERATION)
    # Row 2 is among those that are mixed: it is read before it is written.
    row = kernel.row(archive, 2)
    step = RecombineCall(population, PARENTS, WEIGHTS, mean, path, 0.9, 1.3, row)
    if fused:
        kernel.sample_and_recombine(sampling, step)
    else:
        kernel.sample(sampling)
        kernel.recombine(step)
    return [np.array(kernel.to_host(vector)) for vector in (mean, path, archive)]


def check(kernel: Any, n: int, name: str, box: Box | None, **kinds: Any) -> None:
    law, scaled = LAWS[name]
    if scaled:
        law = law._replace(scale=np.exp(np.random.default_rng(n).standard_normal(n)))
    with_one = moved(kernel, n, law, box, False, **kinds)
    without = moved(kernel, n, law, box, True, **kinds)
    for one, other in zip(with_one, without, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(with_one[2][2], with_one[2][3])


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("kernel", hosts(), ids=lambda kernel: kernel.name)
def test_the_bits_are_those_with_a_population(kernel: Any, name: str) -> None:
    for n in (1, 65, 1024, 5000):
        for box in boxes(n):
            check(kernel, n, name, box)


@pytest.mark.parametrize("name", LAWS)
def test_the_bits_on_a_device(single: Any, name: str) -> None:
    check(single, 200, name, None, dtype="bfloat16")


@pytest.mark.parametrize("name", LAWS)
def test_the_bits_on_a_device_with_all_in_single_precision(make_kernel: Any, name: str) -> None:
    kernel = make_kernel("float32", "float32")
    check(kernel, 200, name, None, dtype="bfloat16")
    check(kernel, 70, name, boxes(70)[1])


@pytest.mark.parametrize("k", range(3))
def test_the_bits_on_a_device_in_a_box(kernel: Any, single: Any, k: int) -> None:
    check(kernel, 530, "drawn, scaled", boxes(530)[k])
    check(single, 70, "listed", boxes(70)[k])


def test_many_parents_and_threads_give_the_same_bits() -> None:
    native = pytest.importorskip("mmes.kernels.native")
    n, count = 3000, 700
    rng = np.random.default_rng(0)
    parents, weights = rng.permutation(count), rng.standard_normal(count) / count
    found = []
    for threads in (1, 2, 3):
        kernel = native.NativeKernel(threads=threads)
        mean, path = np.zeros(n), np.ones(n)
        sampling = SampleCall(None, count, mean, 1.0, None, StepLaw(), None, SEED, GENERATION)
        kernel.sample_and_recombine(
            sampling, RecombineCall(None, parents, weights, mean, path, 0.9, 0.3)
        )
        found.append((mean, path))
    population = np.empty((count, n))
    mean, path = np.zeros(n), np.ones(n)
    kernel.sample(sampling._replace(population=population, mean=mean))
    kernel.recombine(RecombineCall(population, parents, weights, mean, path, 0.9, 0.3))
    for one in found:
        np.testing.assert_array_equal(one[0], mean)
        np.testing.assert_array_equal(one[1], path)


@pytest.mark.parametrize(
    ("parents", "message"), [([0, 0], "named twice"), ([0, 99], "neither a draw")]
)
def test_parents_that_are_none_are_refused(parents: list[int], message: str) -> None:
    kernel = pytest.importorskip("mmes.kernels.native").NativeKernel()
    mean = np.zeros(5)
    sampling = SampleCall(None, 4, mean, 1.0, None, StepLaw(), None, 1, 1)
    step = RecombineCall(None, np.array(parents), np.ones(2), mean, np.zeros(5), 0.9, 1.0)
    with pytest.raises(ValueError, match=message):
        kernel.sample_and_recombine(sampling, step)
    with pytest.raises(ValueError, match="same mean"):
        kernel.sample_and_recombine(
            sampling, step._replace(parents=np.array([0, 1]), mean=np.zeros(5))
        )
