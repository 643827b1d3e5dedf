"""The native kernel against the reference, its oracle; threads and SIMD levels to the bit."""

from __future__ import annotations

import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest

from mmes.kernels import (
    DrawnRows,
    Lessons,
    Noise,
    RecombineCall,
    ReferenceKernel,
    SampleCall,
    ScaleCall,
    StepLaw,
    choose_kernel,
)
from mmes.kernels.native import RECORDS, NativeKernel, check_records, simd_levels
from mmes.spaces.boxes import BOXES, Box, Start

REFERENCE = ReferenceKernel()
SIZES = [1, 2, 63, 64, 65, 1000, 1025, 3000]


def make_case(n: int, candidates: int, mirrored: bool, noise: Noise, scaled: bool, used: int = 5):
    rng = np.random.default_rng(n + candidates)
    draws = (candidates + 1) // 2 if mirrored else candidates
    archive = rng.standard_normal((7, n)).astype(np.float32)
    rows = rng.integers(-1, 7, (draws, used))
    factors = rng.standard_normal((draws, used)).astype(np.float32)
    scale = np.exp(rng.standard_normal(n)) if scaled else None
    mean = rng.standard_normal(n)
    return draws, mean, archive, StepLaw(0.8, rows, factors, noise, scale)


def sampled(kernel, n, candidates, case, box=None, sigma=0.7, rows=None):
    draws, mean, archive, law = case
    out = np.empty((candidates if rows is None else len(rows), n))
    kernel.sample(SampleCall(out, draws, mean, sigma, archive, law, box, 12345, 6, rows))
    return out


@pytest.mark.parametrize("simd", simd_levels())
@pytest.mark.parametrize("draws", [5, 7, 9])
def test_rows_select_candidates_without_changing_them(simd: str, draws: int) -> None:
    n, candidates, kernel = 1100, 9, NativeKernel(simd=simd)
    _, mean, archive, law = make_case(n, candidates, False, Noise.NORMAL, True)
    law = law._replace(rows=law.rows[:draws], factors=law.factors[:draws])
    case = (draws, mean, archive, law)
    everyone = sampled(kernel, n, candidates, case)
    reference = sampled(REFERENCE, n, candidates, case)
    for rows in ([3], [8, 0], [7, 2, 5, 1], list(range(9))[::-1]):
        wanted = np.array(rows)
        found = sampled(kernel, n, candidates, case, rows=wanted)
        np.testing.assert_array_equal(found, everyone[wanted])
        found = sampled(REFERENCE, n, candidates, case, rows=wanted)
        np.testing.assert_array_equal(found, reference[wanted])


@pytest.mark.parametrize("simd", simd_levels())
@pytest.mark.parametrize("noise", list(Noise))
@pytest.mark.parametrize("n", SIZES)
def test_sample_agrees_with_the_reference(n: int, noise: Noise, simd: str) -> None:
    for candidates, mirrored, scaled in ((6, True, False), (7, True, True), (5, False, False)):
        case = make_case(n, candidates, mirrored, noise, scaled)
        expected = sampled(REFERENCE, n, candidates, case)
        found = sampled(NativeKernel(simd=simd), n, candidates, case)
        np.testing.assert_allclose(found, expected, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("treatment", [box for box in BOXES.values() if not box.maps_points])
@pytest.mark.parametrize("kernel", [REFERENCE, NativeKernel()], ids=["reference", "native"])
def test_samples_stay_in_the_box(kernel, treatment: type[Box]) -> None:
    n, candidates = 300, 9
    lower, upper = np.full(n, -0.5), np.full(n, 1.0)
    lower[:50], upper[50:100] = -np.inf, np.inf
    lower[100:110] = upper[100:110] = 0.25
    box = treatment.around(lower, upper, Start(np.full(n, 0.25), 0.1))
    case = make_case(n, candidates, True, Noise.NORMAL, False)
    for sigma in (0.1, 1.0, 1e3, 1e12):
        found = sampled(kernel, n, candidates, case, box, sigma)
        assert np.isfinite(found).all()
        assert ((found >= lower) & (found <= upper)).all()
        expected = sampled(REFERENCE, n, candidates, case, box, sigma)
        np.testing.assert_allclose(
            found, expected, rtol=1e-5, atol=3e-6 * min(sigma, 1.0) + 2e-6 * sigma
        )


@pytest.mark.parametrize("n", SIZES)
def test_recombine_agrees_with_the_reference(n: int) -> None:
    rng = np.random.default_rng(n)
    population, parents = rng.standard_normal((9, n)), np.array([3, 0, 8, 5])
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    states = []
    for kernel in (REFERENCE, *(NativeKernel(simd=simd) for simd in simd_levels())):
        mean, path = np.linspace(-1, 1, n), np.linspace(1, 2, n)
        row = np.zeros(n, dtype=np.float32)
        kernel.recombine(RecombineCall(population, parents, weights, mean, path, 0.9, 2.5, row))
        states.append((mean, path, row))
    for found in states[1:]:
        for a, b in zip(found, states[0], strict=True):
            np.testing.assert_allclose(
                a, b, rtol=1e-6 if a.dtype == np.float32 else 1e-12, atol=1e-12
            )
    mean, path, row = states[0]
    np.testing.assert_allclose(mean, weights @ population[parents])
    np.testing.assert_array_equal(row, path.astype(np.float32))


@pytest.mark.parametrize("noise", list(Noise))
def test_adapt_scale_agrees_with_the_reference(noise: Noise) -> None:
    weights = np.array([0.3, -0.2, 0.0, 0.4, -0.5])
    scales = []
    for kernel in (REFERENCE, NativeKernel()):
        scale = np.linspace(0.5, 2.0, 1500)
        kernel.adapt_scale(ScaleCall(scale, weights, 0.05, noise, 77, 3))
        scales.append(scale)
    np.testing.assert_allclose(scales[1], scales[0], rtol=1e-6)
    start = np.linspace(0.5, 2.0, 1500)
    assert np.log(scales[0]).mean() == pytest.approx(np.log(start).mean(), abs=1e-12)
    moved = scales[0] != start
    assert moved.any() == (noise is not Noise.RADEMACHER)  # z_0^2 = 1 carries no signal


LESSONS = (0.9, 0.4, 2.0, 0.25, 9.0, 16.0)


def lesson(kernel, n: int, noise: Noise = Noise.NORMAL):
    """Take three lessons; return scale, path and the sums of the cut-off squares."""
    weights = np.array([0.3, -0.2, 0.0, 0.4, -0.5])
    scale, path = np.linspace(0.5, 2.0, n), np.linspace(-5.0, 5.0, n)
    sums = [
        kernel.adapt_scale(ScaleCall(scale, weights, 0.05, noise, 77, g, Lessons(path, *LESSONS)))
        for g in range(3)
    ]
    return scale, path, np.array(sums)


@pytest.mark.parametrize("n", [1, 7, 1500])
@pytest.mark.parametrize("noise", list(Noise))
def test_lessons_agree_with_the_reference(noise: Noise, n: int) -> None:
    expected, found = lesson(REFERENCE, n, noise), lesson(NativeKernel(), n, noise)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    assert np.log(found[0]).mean() == pytest.approx(
        np.log(np.linspace(0.5, 2.0, n)).mean(), abs=1e-12
    )


def test_lessons_are_the_same_bits_on_every_level_and_with_threads() -> None:
    first = lesson(NativeKernel(1), 100_000)
    for level in simd_levels():
        for threads in (1, 3):
            for a, b in zip(first, lesson(NativeKernel(threads, level), 100_000), strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("stored", [0, 20, 50])
@pytest.mark.parametrize("used", [1, 4, 16, 17, 70])  # up to 16 are made for many draws at a time
def test_drawn_rows_are_the_same(stored: int, used: int) -> None:
    order = np.random.default_rng(stored).permutation(stored)
    drawn = DrawnRows(np.cumsum(np.full(50, 0.02)), order, used, 0.5)
    a_rows, a_factors = REFERENCE.drawn_rows(drawn, 13, 3, 9)
    found = [NativeKernel(simd=simd).drawn_rows(drawn, 13, 3, 9) for simd in simd_levels()]
    for b_rows, b_factors in found:
        np.testing.assert_array_equal(a_rows, b_rows)
        np.testing.assert_allclose(a_factors, b_factors, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(b_factors, found[0][1])


@pytest.mark.parametrize("simd", simd_levels())
def test_a_drawn_law_is_that_of_its_rows(simd: str) -> None:
    n, draws, kernel = 200, 4, NativeKernel(simd=simd)
    directions = np.random.default_rng(1).standard_normal((9, n)).astype(np.float32)
    drawn = DrawnRows(np.linspace(0.1, 1, 9), np.array([4, 2, 7, 0]), 5, 0.5)
    rows, factors = kernel.drawn_rows(drawn, draws, 12345, 6)
    assert (rows < 0).any()
    case = (draws, np.zeros(n), directions)
    np.testing.assert_array_equal(
        sampled(kernel, n, 2 * draws, (*case, StepLaw(0.8, drawn=drawn))),
        sampled(kernel, n, 2 * draws, (*case, StepLaw(0.8, rows, factors))),
    )


@pytest.mark.parametrize("noise", list(Noise))
def test_threads_and_simd_change_no_bit(noise: Noise) -> None:
    n, candidates = 20_000, 7
    case = make_case(n, candidates, True, noise, True)
    found = [
        sampled(NativeKernel(threads=threads, simd=level), n, candidates, case)
        for threads in (1, 2, 3, 16)
        for level in simd_levels()
    ]
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_unknown_simd_level_is_refused() -> None:
    with pytest.raises(ValueError, match="simd must be one of"):
        NativeKernel(simd="mmx")


def test_misfitting_arrays_are_refused() -> None:
    kernel = NativeKernel()
    law = StepLaw(1.0, np.zeros((2, 1), dtype=np.int64), np.ones((2, 1), dtype=np.float32))
    call = SampleCall(np.empty((4, 5)), 2, np.zeros(6), 1.0, None, law, None, 1, 1)
    with pytest.raises(ValueError, match="differ in dimension"):
        kernel.sample(call)
    with pytest.raises(ValueError, match="outside the directions"):
        kernel.sample(call._replace(mean=np.zeros(5)))
    with pytest.raises(ValueError, match="neither a draw nor the mirror image"):
        kernel.sample(call._replace(mean=np.zeros(5), rows=np.array([0, 1, 2, 4])))


def changed(record: type, change: str) -> type:
    """Return a record of the same name whose fields differ from those that were compiled."""
    fields = list(record._fields)
    if change == "reordered":
        fields[1], fields[2] = fields[2], fields[1]
    elif change == "renamed":
        fields[-1] += "2"
    else:
        fields.append("more")
    return namedtuple(record.__name__, fields)


@pytest.mark.parametrize("change", ["reordered", "renamed", "longer"])
@pytest.mark.parametrize("record", RECORDS)
def test_records_that_would_be_misread_are_refused(record: type, change: str) -> None:
    other = changed(record, change)
    with pytest.raises(ImportError, match=f"{record.__name__} has the fields .*reinstall it"):
        check_records([other])


def test_a_reordered_record_is_refused_before_the_first_call() -> None:
    code = """
import mmes.kernels.protocol as protocol
from typing import NamedTuple
fields = {name: object for name in sorted(protocol.SampleCall._fields)}
protocol.SampleCall = NamedTuple("SampleCall", fields.items())
import mmes
mmes.MMES([0.0, 0.0], 1.0, kernel="native").ask()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: kernel='native' cannot be loaded" in done.stderr
    assert "SampleCall has the fields (box, directions, draws" in done.stderr


def test_a_record_of_another_length_is_refused() -> None:
    case = make_case(4, 4, False, Noise.NORMAL, False)
    with pytest.raises(ValueError, match="too few or too many fields"):
        sampled(NativeKernel(), 4, 4, (*case[:3], case[3][:5]))


def test_the_environment_may_choose_the_threads(monkeypatch):
    """Where many runs share the cores, as in the laboratory."""
    monkeypatch.setenv("MMES_THREADS", "3")
    assert choose_kernel("native").threads == 3
    assert choose_kernel("native", 2).threads == 2
    monkeypatch.setenv("MMES_THREADS", "many")
    with pytest.raises(ValueError, match="MMES_THREADS must be an integer >= 1, not 'many'"):
        choose_kernel("native")


@pytest.mark.parametrize("simd", simd_levels())
@pytest.mark.parametrize("noise", list(Noise))
@pytest.mark.parametrize("n", [65, 1025])
def test_kept_noise_teaches_the_same_scale(n: int, noise: Noise, simd: str) -> None:
    draws, mean, archive, law = make_case(n, 9, False, noise, True)
    call = SampleCall(np.empty((9, n)), draws, mean, 0.7, archive, law, None, 5, 6)
    weights = np.random.default_rng(n).standard_normal(draws)
    keeping, forgetful, elsewhere = (NativeKernel(simd=simd) for _ in range(3))
    keeping.sample(call._replace(keep_noise=True))
    forgetful.sample(call)
    elsewhere.sample(call._replace(keep_noise=True, generation=7))
    found = []
    for kernel in (keeping, forgetful, elsewhere):
        found.append(np.ones(n))
        kernel.adapt_scale(ScaleCall(found[-1], weights, 0.1, noise, 5, 6))
    assert (np.ptp(found[0]) > 0) == (noise is not Noise.RADEMACHER)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
