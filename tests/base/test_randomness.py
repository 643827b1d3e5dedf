"""The random streams: known answers, layout, agreement of the kernels, moments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import mmes.kernels._native as native
from mmes.base import randomness
from mmes.base.randomness import Stream

# The known-answer vectors of the Random123 distribution for philox4x32-10: counter, key, result.
KNOWN = [
    ("0 0 0 0", "0 0", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (" ".join(["ffffffff"] * 4), "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]
LEVELS = native.simd_levels()


def as_words(text: str) -> np.ndarray:
    return np.array([int(word, 16) for word in text.split()], dtype=np.uint32)


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers(counter: str, key: str, expected: str) -> None:
    low, high = as_words(key)
    seed = int(low) | int(high) << 32
    assert np.array_equal(randomness.philox(as_words(counter), seed), as_words(expected))


def test_layout_of_a_sequence() -> None:
    """Item k is word (k // 16) % 4 of block 16 (k // 64) + k % 16."""
    seed, stream, generation, candidate = 2**63 + 12345, 3, 7, 5
    sequence = randomness.words(200, seed, stream, generation, candidate)
    for k in (0, 1, 15, 16, 63, 64, 130, 199):
        counter = np.array(
            [16 * (k // 64) + k % 16, candidate, generation, stream], dtype=np.uint32
        )
        assert sequence[k] == randomness.philox(counter, seed)[(k // 16) % 4]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("count", [1, 15, 64, 65, 1000])
def test_native_words_and_uniforms_are_the_same_bits(level: str, count: int) -> None:
    for seed in (0, 1, 2**64 - 1, 0x0123456789ABCDEF):
        out = np.empty(count, dtype=np.uint32)
        native.words(native.Level(level), out, seed, 4, 2**32 - 1, 17)
        assert np.array_equal(out, randomness.words(count, seed, 4, 2**32 - 1, 17))
        uniforms = np.empty(count)
        native.uniforms(native.Level(level), uniforms, seed, 4, 2**32 - 1, 17)
        assert np.array_equal(uniforms, randomness.uniforms(count, seed, 4, 2**32 - 1, 17))


@pytest.mark.parametrize("level", LEVELS)
def test_native_normals_are_equal_to_float32_rounding(level: str) -> None:
    out = np.empty(200_000, dtype=np.float32)
    native.normals(native.Level(level), out, 99, Stream.ISOTROPIC, 3, 1)
    expected = randomness.normals(out.size, 99, Stream.ISOTROPIC, 3, 1)
    # Four units in the last place of a float32, relative to the number itself.
    assert np.abs(out - expected).max() <= 1e-6
    assert (np.abs(out - expected) / np.abs(expected)).max() < 5 * 2.0**-24


def test_extreme_words_give_finite_normals() -> None:
    """The smallest and the largest uniform: the radius is finite and not negative."""
    radius = np.sqrt(2 * randomness._minus_log(np.array([0, 1, 2**32 - 1], dtype=np.uint32)))
    assert np.isfinite(radius).all()
    assert radius[0] == pytest.approx(math.sqrt(2 * 33 * math.log(2)), rel=1e-6)
    assert radius[2] == 0.0


@pytest.mark.parametrize(
    ("draw", "kurtosis"),
    [
        (lambda n: randomness.normals(n, 11, Stream.ISOTROPIC), 3.0),
        (lambda n: randomness.signs(n, 11, Stream.ISOTROPIC), 1.0),
        (lambda n: randomness.student(n, 11), None),
    ],
    ids=["normal", "rademacher", "student"],
)
def test_moments(draw, kurtosis: float | None) -> None:
    """Mean 0, variance 1, kurtosis: each within 5 standard errors (false alarm below 1e-5)."""
    z = draw(400_000).astype(np.float64)
    n = z.size
    assert abs(z.mean()) < 5 / math.sqrt(n)
    spread = math.sqrt((np.mean(z**4) - 1) / n) if kurtosis != 1.0 else 1e-12
    assert abs(np.mean(z**2) - 1) < 5 * spread
    if kurtosis is not None:
        error = math.sqrt(max(np.mean(z**8) - np.mean(z**4) ** 2, 1e-20) / n)
        assert abs(np.mean(z**4) - kurtosis) < 5 * error


def test_normals_and_student_follow_their_law() -> None:
    """Kolmogorov-Smirnov at p > 1e-4: false alarm 2e-4, with a fixed seed."""
    z = randomness.normals(100_000, 5, Stream.ISOTROPIC)
    assert stats.kstest(z, "norm").pvalue > 1e-4
    t = randomness.student(100_000, 5) * math.sqrt(5 / 3)
    assert stats.kstest(t, stats.t(5).cdf).pvalue > 1e-4


def test_streams_candidates_and_generations_are_unrelated() -> None:
    """Correlations of 10^5 numbers below 5 / sqrt(10^5) (false alarm below 1e-5)."""
    n = 100_000
    base = randomness.normals(n, 1, 0, 0, 0)
    for other in ((2, 0, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1)):
        z = randomness.normals(n, *other)
        assert not np.array_equal(z, base)
        assert abs(np.corrcoef(base, z)[0, 1]) < 5 / math.sqrt(n)


def test_neighbouring_coordinates_are_unrelated() -> None:
    z = randomness.normals(100_000, 8, 0).astype(np.float64)
    for lag in (1, 2, 15, 16, 17, 32, 64):
        assert abs(np.mean(z[lag:] * z[:-lag])) < 5 / math.sqrt(z.size)
        assert abs(np.mean((z[lag:] ** 2 - 1) * (z[:-lag] ** 2 - 1))) < 5 * 2 / math.sqrt(z.size)


def test_child_seeds_differ_and_repeat() -> None:
    seeds = [randomness.child_seed(42, i) for i in range(100)]
    assert len(set(seeds)) == 100
    assert seeds == [randomness.child_seed(42, i) for i in range(100)]
    assert all(0 <= seed < 2**64 for seed in seeds)


def test_numpys_global_generator_is_untouched() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    randomness.normals(1000, 1, 0)
    randomness.fresh_seed()
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
