"""The interface of a kernel, and the records passed to it.

A kernel owns every vector of length n: strategies and the shell only hold handles. On the host a
handle is a numpy array, on a GPU a tensor, and in a test a type that refuses every operation
(tests/kernels/test_ownership.py). Small arrays, with one entry per candidate, parent or direction,
are numpy arrays everywhere.

The native kernel reads the records by the positions of their fields, listed in native/records.hpp:
a field that is added or moved here must be changed there too, or the import of the kernel fails.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mmes.spaces.boxes import Box

Vector = NDArray[np.float64]
"""A host vector."""
Handle = Any
"""A vector of length n, or rows of such vectors, that a kernel owns."""


KEPT_NOISE_BYTES = 2**28
"""Memory that a kernel takes at most for the isotropic parts of a generation."""


class Noise(IntEnum):
    """The distribution of the isotropic part z_0; the values are those of the native kernel."""

    NORMAL = 0
    STUDENT = 1
    RADEMACHER = 2


class DrawnRows(NamedTuple):
    """Rows that each draw chooses at random, as in the mixture of MMES.

    A draw uses `used` directions, chosen with replacement by age from a cumulative distribution,
    each with a factor N(0, factor^2).
    """

    # Cumulative distribution of the ages, newest first; one entry per row of the archive.
    cumulative: Vector
    # The occupied rows from the oldest to the newest; an age beyond them is an empty slot.
    order: NDArray[np.int64]
    used: int  # Rows per draw, l.
    factor: float  # Standard deviation of the factors.


class StepLaw(NamedTuple):
    """The distribution of the steps of one generation.

    A step is z = isotropic * scale .* z_0 + sum_k factors_k directions[rows_k].
    """

    isotropic: float = 1.0  # Factor of the isotropic part, sqrt(1 - gamma).
    # The rows that each draw mixes, (draws, used); a negative one means an empty slot (a zero
    # vector). None: no rows, or those of `drawn`.
    rows: NDArray[np.int64] | None = None
    factors: NDArray[np.float32] | None = None  # Their factors, (draws, used).
    noise: Noise = Noise.NORMAL  # The law of z_0.
    scale: Handle | None = None  # One scale per coordinate, d; None means ones.
    # Whether the scale multiplies the whole step; by default the rows are already in the
    # coordinates of the search.
    scale_rows: bool = False
    # One factor per draw, (draws,), instead of `isotropic`, if draws differ in it.
    isotropic_each: NDArray[np.float32] | None = None
    # Rows and factors drawn by the kernel, instead of `rows` and `factors`.
    drawn: DrawnRows | None = None


class SampleCall(NamedTuple):
    """One generation to sample: candidates mean + sigma z.

    Candidate i < draws is draw i, and candidate draws + i is the mirror image of draw i.
    """

    # Receives the candidates, (k, n); None in `Kernel.sample_and_recombine` alone.
    population: Handle
    draws: int  # Number of independent steps h.
    mean: Handle
    sigma: float
    directions: Handle | None  # The rows that the law mixes, (m, n).
    law: StepLaw
    box: Box | None  # A box whose treated points are the candidates (`Box.maps_points` is false).
    # seed, generation: where the random numbers are.
    seed: int
    generation: int
    # Which candidates to generate, one per row of the population; None means all in order. A
    # candidate does not depend on which others are generated.
    rows: NDArray[np.int64] | None = None
    # Whether `adapt_scale` or `noise_sum` will need the isotropic parts of this generation again. A
    # kernel may then keep them, up to `KEPT_NOISE_BYTES`, instead of generating them again.
    keep_noise: bool = False


class RecombineCall(NamedTuple):
    """The step of the mean to the weighted parents, the path with it, both in place.

    The path becomes decay * path + gain * (step of the mean), and is also written to `archive_row`,
    if given. `parents` are rows of the population; without a population, candidates in
    `Kernel.sample_and_recombine`; with a `ranking`, ranks (see `Kernel.ranked`).
    """

    population: Handle
    parents: NDArray[np.int64]
    weights: Vector
    mean: Handle
    path: Handle
    decay: float
    gain: float
    archive_row: Handle | None = None
    ranking: Handle | None = None


class Lessons(NamedTuple):
    """The path of what generations say about the scale of each coordinate, moved in place.

    With x the lesson of this generation, less its mean over the coordinates, the path q becomes
    decay * q + gain * x. What it was before decides how fast coordinate k learns: at `factor` times
    the rate, and by `slope` more for each unit of q_k^2 above `threshold`, up to `fastest`.
    """

    path: Handle
    decay: float
    gain: float
    factor: float
    slope: float
    threshold: float
    fastest: float


class ScaleCall(NamedTuple):
    """One update of the scale d of each coordinate, in place.

    d_k grows by exp(rate * sum_i weights_i z_{0,i,k}^2), at constant mean of log d. `weights` has
    one entry per draw; the isotropic parts z_0 of the generation are generated again from their
    address. With `lessons`, each coordinate has a rate of its own.
    """

    scale: Handle
    weights: Vector
    rate: float
    noise: Noise
    seed: int
    generation: int
    lessons: Lessons | None = None


class PathCall(NamedTuple):
    """One step of a path of isotropic parts: decay * path + gain * sum_i weights_i z_{0,i}.

    In place; `weights` has one entry per draw.
    """

    path: Handle
    weights: Vector
    decay: float
    gain: float
    noise: Noise
    seed: int
    generation: int


class NoiseWithin(NamedTuple):
    """The weighted sum of the isotropic parts of the clipped steps.

    The part of candidate i in a coordinate is that of its draw (for a mirror image the negative)
    where it lies inside the box, and where it lies on a wall as much of that as fits into the step
    that was evaluated.
    """

    population: Handle  # The candidates as they were evaluated, shape (lambda, n).
    weights: Vector  # One weight per candidate.
    draws: int  # Number of independent steps h.
    mean: Handle  # The mean that they were drawn around.
    scale: Handle | None  # One scale per coordinate; None stands for ones.
    size: float  # Standard deviation of an isotropic part where the scale is 1.
    box: Box  # A box that clips.
    noise: Noise
    seed: int
    generation: int


class Kernel(Protocol):
    """The operations on vectors of length n that strategies use.

    No result depends on the number of threads.
    """

    @property
    def name(self) -> str:
        """The name of the kernel, for display, for example ``"native avx512"``."""
        ...

    @property
    def device(self) -> str | None:
        """Where the vectors are, for example ``"cuda:0"``; None for host memory."""
        ...

    @property
    def entry_bytes(self) -> int:
        """Bytes of one entry of a candidate."""
        ...

    @property
    def vector_bytes(self) -> int:
        """Bytes of one entry of a mean, path or scale."""
        ...

    # Memory

    def available_bytes(self) -> int:
        """Return the bytes that can still be allocated for vectors."""
        ...

    def vector(self, n: int) -> Handle:
        """Return a vector of zeros, in the precision of means and paths."""
        ...

    def directions(self, m: int, n: int, dtype: str = "float32") -> Handle:
        """Return m zero rows, stored directions; ``"bfloat16"`` where the kernel has it."""
        ...

    def population(self, rows: int, n: int) -> Handle:
        """Return uninitialized memory for candidates."""
        ...

    def from_host(self, array: NDArray[Any]) -> Handle:
        """Return a vector with a copy of these entries."""
        ...

    def to_host(self, handle: Handle) -> NDArray[Any]:
        """Return the entries as a numpy array; not copied if the handle is one."""
        ...

    def copy(self, vector: Handle) -> Handle:
        """Return a copy."""
        ...

    def assign(self, target: Handle, source: Handle | NDArray[Any]) -> None:
        """Copy the entries of a vector, of rows, or of a host array into another."""
        ...

    def row(self, rows: Handle, index: int) -> Handle:
        """Return one row, sharing memory."""
        ...

    def part(self, rows: Handle, start: int, stop: int | None = None) -> Handle:
        """Return the rows from `start` on, up to `stop`, sharing memory."""
        ...

    def gathered(self, rows: Handle, index: NDArray[np.intp]) -> Handle:
        """Return some rows in the order of `index`, as a copy."""
        ...

    def writes(self, rows: Handle) -> int:
        """Return how often others wrote to rows, if users can write to them."""
        ...

    def ranked(self, values: Any, count: int, n: int) -> Handle | None:
        """Return a ranking that only `recombine` can read, of `count` told values on the device.

        The host need not have them yet: what is called next runs while they are being copied, and
        only if one of them is a number or -inf. None if there is no benefit.
        """
        ...

    def fetched(self, values: Any) -> Any:
        """Return told values in host memory if the kernel fetches them; otherwise unchanged."""
        ...

    def readonly_view(self, handle: Handle, shape: tuple[int, ...]) -> Handle:
        """Return points as users see them: of this shape, and read-only if possible."""
        ...

    # Arithmetic

    def dot(self, a: Handle, b: Handle) -> float:
        """Return the scalar product of two vectors."""
        ...

    def largest(self, vector: Handle) -> float:
        """Return the largest absolute entry."""
        ...

    def blend(self, target: Handle, decay: float, gain: float, source: Handle) -> None:
        """Move a vector to decay * target + gain * source, in place."""
        ...

    def multiply(self, target: Handle, factors: Handle) -> None:
        """Multiply a vector entry by entry, in place."""
        ...

    def divide(self, target: Handle, divisors: Handle) -> None:
        """Divide a vector entry by entry, in place."""
        ...

    # Steps

    def normals(self, count: int, seed: int, stream: int, generation: int) -> NDArray[np.float32]:
        """Return a few standard normal numbers at this address of the random streams."""
        ...

    def sample(self, call: SampleCall) -> None:
        """Fill a population; see `SampleCall`."""
        ...

    def recombine(self, call: RecombineCall) -> None:
        """Move mean and path; see `RecombineCall`."""
        ...

    def sample_and_recombine(self, sampling: SampleCall, step: RecombineCall) -> None:
        """Move mean and path as `sample` and `recombine` would, without a population.

        The parents, which are candidates of `sampling`, are generated again and added up, a few
        coordinates at a time; the result is the same to the bit. Both calls have the same mean.
        This does not work with a custom treatment of bounds, which needs whole points.
        """
        ...

    def adapt_scale(self, call: ScaleCall) -> float:
        """Learn the scale of each coordinate; see `ScaleCall`.

        Returns the sum of min(q_k^2, threshold) over the new path of lessons; 0 without one.
        """
        ...

    def confine(self, image: Handle, points: Handle, box: Box) -> None:
        """Write the points of the box for `points` to `image`: rows, or one vector."""
        ...


@runtime_checkable
class ReducingKernel(Kernel, Protocol):
    """A kernel with sums over coordinates and over draws, which other strategies need.

    Not available on a manifold.
    """

    def fill_normals(self, rows: Handle, size: float, seed: int, stream: int) -> None:
        """Fill rows with size * N(0, 1), the numbers of one address in the order of the rows."""
        ...

    def noise_sum(
        self, weights: Vector, n: int, noise: Noise, seed: int, generation: int
    ) -> Handle:
        """Return sum_i weights_i z_{0,i}, one weight per draw, of length n.

        The isotropic parts z_0 of the generation's draws are made again from their address.
        """
        ...

    def follow_noise(self, call: PathCall, lesson: ScaleCall | None) -> float:
        """Move a path by the isotropic parts of a generation; learn the scale from them too.

        Returns what `adapt_scale` returns.
        """
        ...

    def noise_within(self, call: NoiseWithin) -> tuple[Handle, float]:
        """Return the weighted sum of the isotropic parts, and the share that clipping left of them.

        The share is that of sum_i |t_i|^2, with t_i the sum of draw i and its mirror image: 1 where
        all candidates lie inside, 0 where no draw left a wall. It may exceed 1 where the members of
        a pair would take back one another.
        """
        ...

    def step_squares(self, call: RecombineCall) -> Handle:
        """Return sum_k weights_k (gain (x_k - mean))^2 of the parents, entry by entry."""
        ...

    def adapt_deviations(
        self, deviations: Handle, rates: tuple[float, float, float], path: Handle, squares: Handle
    ) -> None:
        """Move d to sqrt(r_0 d^2 + r_1 path^2 + r_2 squares), entry by entry, in place."""
        ...

    def project(
        self, vectors: Handle, rows: NDArray[np.int64], noise: Noise, seed: int, generation: int
    ) -> Vector:
        """Return the scalar products of vectors[rows_ik] with z_{0,i}; 0 for a negative row."""
        ...

    def products(self, vectors: Handle, vector: Handle) -> Vector:
        """Return the scalar product of each row with a vector."""
        ...

    def add_rows(self, target: Handle, coefficients: Vector, vectors: Handle) -> None:
        """Add sum_i coefficients_i vectors_i to a vector, in place."""
        ...

    def gram(self, vectors: Handle, accurate: bool = True) -> Vector:
        """Return the (m, m) scalar products of the vectors, rounded as float64 if `accurate`.

        Otherwise as float32, which is faster.
        """
        ...

    def accumulate(self, vectors: Handle, decays: Vector, gains: Vector, step: Handle) -> None:
        """Move each vector to decays_i vectors_i + gains_i step, in place."""
        ...

    def combine(
        self, out: Handle, targets: NDArray[np.int64], coefficients: Vector, vectors: Handle
    ) -> None:
        """Write sum_j coefficients_ij vectors_j to out[targets_i]."""
        ...

    def deflate(self, vectors: Handle, decay: float, gain: float, step: Handle) -> None:
        """Let each vector in turn learn from the step and take its part out of it, both in place.

        For q = vectors_1, vectors_2, ..: q <- decay q + gain u; t = u.q / q.q; u <- (u - t q) /
        sqrt(1 + t^2), where u is the step.
        """
        ...
