"""Promises about size, bad arguments and odd use: rows 20 to 23 and 27."""

import contextlib
import os
import random
import re
import sys
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest

import mmes
from mmes.errors import KernelWarning, ReducedArchiveWarning
from mmes.minimize import RUN_OPTIONS
from mmes.strategies.registry import STRATEGIES
from mmes.testing import hostile
from paths import TESTS

START = (np.ones(6), 0.5)

# Row 20: huge n


def test_row20_an_impossible_size_is_refused_before_anything_is_allocated(monkeypatch):
    monkeypatch.setattr("mmes.base.memory.available_bytes", lambda: 20 * 2**30)
    huge = np.broadcast_to(0.0, 10**9)  # takes no memory itself
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError, match=r"n = 1000000000 .* GiB\) are usable|GiB are usable"):
            mmes.MMES(huge, 1.0)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


def test_row20_the_archive_gives_way_with_a_warning(monkeypatch):
    monkeypatch.setattr("mmes.base.memory.available_bytes", lambda: 25_000_000)
    with pytest.warns(ReducedArchiveWarning, match=r"m is reduced to \d+"):
        es = mmes.MMES(np.zeros(50_000), 1.0)
    assert 10 <= es.options["archive_size"] < 448
    with pytest.raises(MemoryError, match=r"archive of m = 448 .*archive_size=\d+ would fit"):
        mmes.MMES(np.zeros(50_000), 1.0, archive_size=448)


def test_row20_what_is_too_large_is_named():
    """Failed before: a huge population was told that the matrices were too large."""
    with pytest.raises(MemoryError, match=r"with a population of 1000000000000, .* too large"):
        mmes.minimize(hostile.sphere, [1.0, 2.0], 1, population_size=10**12)
    with pytest.raises(MemoryError, match="CMA-ES keeps n x n matrices"):
        mmes.strategies.CMAES(np.zeros(10**6), 1.0)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux's /proc")
def test_row20_the_estimate_is_the_peak(script):
    process = script(
        """
        import numpy as np
        import mmes
        from pathlib import Path

        def bytes_of(name):  # not of getrusage, which remembers the process before exec
            lines = Path("/proc/self/status").read_text().splitlines()
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

        mmes.MMES(np.zeros(100), 1.0).ask()  # libraries loaded
        n = 100_000
        x0 = np.zeros(n)
        before = bytes_of("VmRSS")
        es = mmes.MMES(x0, 1.0, seed=1, archive_size=150)
        for generation in range(155):
            es.ask()
            rows = es.population_size + (generation == 0)
            es.tell(np.sin(np.arange(rows) + generation))
        print(es.planned_bytes, bytes_of("VmHWM") - before)
        """
    )
    out, errors = process.communicate(timeout=100)
    planned, used = map(int, out.split())
    assert abs(used / planned - 1) < 0.1, errors


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux's /proc")
def test_row20_without_a_population_the_estimate_covers_the_peak(script):
    process = script(
        """
        import numpy as np
        import mmes
        from pathlib import Path

        def bytes_of(name):
            lines = Path("/proc/self/status").read_text().splitlines()
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

        def told(es, generations):
            for generation in range(generations):
                for row in range(es.rows):
                    es.ask(rows=[row])
                es.tell(np.sin(np.arange(es.rows) + generation))

        told(mmes.AdaptiveMMES(np.zeros(100), 1.0, rows_at_once=1), 2)  # libraries loaded
        x0 = np.zeros(2_000_000)
        before = bytes_of("VmRSS")
        es = mmes.AdaptiveMMES(x0, 1.0, seed=1, archive_size=3, population_size=4, rows_at_once=1)
        told(es, 4)
        # Noise is not kept where candidates are asked for a few at a time.
        print(es.planned_bytes - 4 * 4 * x0.size, bytes_of("VmHWM") - before)
        """
    )
    out, errors = process.communicate(timeout=100)
    planned, used = map(int, out.split())
    assert 0.8 < used / planned < 1.02, errors


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux's /proc")
def test_row20_on_a_manifold_the_estimate_covers_the_peak(script):
    process = script(
        """
        import numpy as np
        import mmes
        from mmes.spaces.manifolds import Grassmann
        from pathlib import Path

        def bytes_of(name):
            lines = Path("/proc/self/status").read_text().splitlines()
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

        small = mmes.MMES(np.eye(30, 3), 1.0, manifold=Grassmann(30, 3))
        small.tell(np.ones(len(small.ask())))  # libraries loaded
        x0 = np.eye(20_000, 5)
        before = bytes_of("VmRSS")
        es = mmes.MMES(x0, 1.0, manifold=Grassmann(20_000, 5), seed=1, archive_size=10)
        for generation in range(4):
            rows = len(es.ask())
            es.tell(np.sin(np.arange(rows) + generation))
        print(es.planned_bytes, bytes_of("VmHWM") - before)
        """
    )
    out, errors = process.communicate(timeout=100)
    planned, used = map(int, out.split())
    assert 0.6 < used / planned < 1.05, errors


# Row 21: bad parameters

TABLE = {
    (name, option)
    for name, strategy in STRATEGIES.items()
    for option in RUN_OPTIONS + strategy.option_table()
}


def bad_values(option):
    if option.kind is bool:
        yield from ("yes", 1, 0.5)
        return
    yield from (object(), [1], {"a": 1}, 1j)
    yield "no such word"
    if option.kind is str:
        yield 3
        return
    yield from (float("nan"), True)
    if option.kind is int:
        yield 2.5
    if option.kind is float:
        yield float("inf")
    if option.low is not None:
        yield option.low - 1
        if option.low_open:
            yield option.low
    if option.high is not None:
        yield option.high + 1
        if option.high_open:
            yield option.high


@pytest.mark.parametrize(
    ("strategy", "option"), sorted(TABLE, key=str), ids=lambda v: getattr(v, "name", v)
)
def test_row21_every_option_refuses_what_it_must(strategy, option):
    for value in bad_values(option):
        # A device is any word where torch is missing, which is then said.
        said = f"{option.name} must be|device='no such word' needs torch"
        with pytest.raises((TypeError, ValueError, ImportError), match=said):
            mmes.Run(hostile.sphere, *START, strategy=strategy, **{option.name: value})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, np.nan], 1.0), r"x0 must be finite, but x0\[1\] is nan"),
        (([1.0, np.inf], 1.0), r"x0 must be finite, but x0\[1\] is inf"),
        (([], 1.0), "x0 is empty"),
        (([[1.0]], 1.0), "x0 must be one-dimensional"),
        ((["a"], 1.0), "x0 must hold real numbers"),
        (([1.0], 0.0), r"sigma0 must be a finite number > 0, not 0\.0"),
        (([1.0], -1.0), r"sigma0 must be a finite number > 0, not -1\.0"),
        (([1.0], np.inf), "sigma0 must be a finite number > 0, not inf"),
        (([1.0], "1"), "sigma0 must be a finite number > 0, not '1'"),
    ],
)
def test_row21_bad_starts_are_refused(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        mmes.minimize(hostile.sphere, *arguments)


def test_row21_an_unknown_option_suggests_the_nearest():
    with pytest.raises(TypeError, match=r"no option 'checkpoint_second'.*'checkpoint_seconds'"):
        mmes.minimize(hostile.sphere, *START, checkpoint_second=3)
    with pytest.raises(TypeError, match=r"no option 'max_evals'.*did you mean 'max_evaluations'"):
        mmes.minimize(hostile.sphere, *START, max_evals=3)


def test_row21_integers_are_taken_and_copied():
    x0 = np.arange(5)
    result = mmes.minimize(hostile.sphere, x0, 1, seed=1, max_evaluations=50)
    assert np.array_equal(x0, np.arange(5))
    assert result.x.dtype == np.float64


@pytest.mark.parametrize(
    ("x0", "options", "message"),
    [
        ([1.0, -1e101], {"sigma0": 1.0}, r"x0 must lie within ±1e\+100, but x0\[1\] is -1e\+101"),
        ([1.0, 1.0], {"sigma0": 1e307}, r"sigma0 must lie in 1e-100\.\.1e\+100, not 1e\+307"),
        ([1.0, 1.0], {"sigma0": 1e-320}, r"sigma0 must lie in 1e-100"),
        ([1.0, 1.0], {"sigma0": 1.0, "scale": [1e-20, 1e39]}, r"more than a factor of 1e\+30"),
        ([1.0, 1.0], {"sigma0": 1e90, "scale": [1e20, 1.0]}, r"sigma0 \* scale must lie in"),
        ([1.0, 1.0], {"sigma0": 1.0, "bounds": (1e200, 1e300)}, "lower bound 0 is beyond"),
        ([0.0, 0.0], {"sigma0": 1.0, "bounds": (0.0, 1e-320)}, "at least 1e-100 apart"),
    ],
)
def test_row21_numbers_that_cannot_be_computed_with_are_refused(x0, options, message):
    for strategy in STRATEGIES:
        with pytest.raises(ValueError, match=message):
            mmes.minimize(hostile.sphere, x0, strategy=strategy, **options)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_row21_every_number_of_an_option_is_refused_or_can_be_computed_with(strategy, monkeypatch):
    """Found by the attack: count_offset=2**64 and c_c=1e-320 were errors of Python's own."""
    monkeypatch.setattr("mmes.base.memory.available_bytes", lambda: 2**30)
    kind = STRATEGIES[strategy]
    for option in kind.option_table():
        for value in {int: (2**64, 2**31), float: (1e308, 2.0**64, 1e-320)}.get(option.kind, ()):
            with contextlib.suppress(ValueError, MemoryError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                es = kind(np.ones(6), 0.5, **{"seed": 1, option.name: value})
                for _ in range(3):
                    points = es.ask()
                    assert np.isfinite(points).all()
                    es.tell([hostile.sphere(x) for x in points])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("size", [1e39, 1e-50, 1e80])
def test_row22_scales_of_any_size_search_as_scales_of_one(strategy, size):
    """The common size moves into sigma, as a power of two: the values are the same to the bit."""
    size = 2.0 ** round(np.log2(size))
    options = {"seed": 1, "strategy": strategy, "max_evaluations": 400}
    scale = np.array([1, 2, 1, 3, 1, 1])
    small, large = (
        mmes.minimize(
            lambda x, s=s: hostile.sphere(x / s), np.full(6, s), 0.5, scale=scale * s, **options
        )
        for s in (1.0, size)
    )
    assert large.fun < 1.0
    np.testing.assert_allclose(large.fun, small.fun, rtol=1e-3)


# Row 22: sigma out of range


def test_row22_a_run_takes_any_damping():
    """Found by the attack: the watch for noise waited for infinitely many generations."""
    result = mmes.minimize(hostile.sphere, *START, seed=1, damping=1e308, max_evaluations=100)
    assert result.sigma == pytest.approx(0.5)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_row22_a_linear_objective_ends(strategy):
    finite = []

    def slope(x):
        finite.append(np.isfinite(x).all())
        return float(-x[0])

    result = mmes.minimize(
        slope, *START, seed=1, strategy=strategy, stagnation_window="off", max_evaluations=100_000
    )
    assert result.reason is mmes.StopReason.SIGMA_TOO_LARGE
    assert all(finite)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_row22_a_constant_objective_ends(strategy):
    result = mmes.minimize(
        hostile.Returns(1.0), *START, seed=1, strategy=strategy, max_evaluations=200_000
    )
    assert result.reason is mmes.StopReason.FLAT
    assert np.isfinite(result.mean).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_row22_sigma_falls_to_its_limit(strategy):
    result = mmes.minimize(
        hostile.sphere, *START, seed=1, strategy=strategy, sigma_min=1e-3, stagnation_window="off"
    )
    assert result.reason is mmes.StopReason.SIGMA_TOO_SMALL


# Row 23: telling


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_row23_values_may_come_in_parts_and_any_order(strategy):
    rng = random.Random(1)
    whole, parts = (STRATEGIES[strategy](*START, seed=3) for _ in range(2))
    for _ in range(8):
        points = whole.ask()
        values = hostile.spheres(points)
        whole.tell(values)
        assert np.array_equal(parts.ask(), points)
        rows = list(range(len(values)))
        rng.shuffle(rows)
        while rows:
            some = [rows.pop() for _ in range(min(rng.randint(1, 4), len(rows)))]
            before = parts.generation
            parts.tell(values[some], index=some)
            if rows:
                assert parts.generation == before
    assert np.array_equal(whole.mean, parts.mean)
    assert whole.sigma == parts.sigma


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_row23_wrong_tells_change_nothing(strategy):
    es = STRATEGIES[strategy](*START, seed=3)
    with pytest.raises(mmes.TellError, match="call ask"):
        es.tell([1.0])
    points = es.ask()
    values = hostile.spheres(points)
    es.tell(values[:2], index=[0, 1])
    for wrong, index in (
        (values[:-1], None),
        (values, None),
        ([1.0], [0]),
        ([1.0], [len(values)]),
        ([1.0], [-1]),
        ([1.0, 2.0], [2, 2]),
        ([1.0], [2.5]),
    ):
        with pytest.raises(mmes.TellError):
            es.tell(wrong, index=index)
    with pytest.raises(TypeError):
        es.tell(["a"], index=[2])
    es.tell(values[2:], index=range(2, len(values)))
    with pytest.raises(mmes.TellError):
        es.tell(values)
    clean = STRATEGIES[strategy](*START, seed=3)
    clean.tell(hostile.spheres(clean.ask()))
    assert np.array_equal(clean.mean, es.mean)
    assert np.array_equal(clean.ask(), es.ask())


# Row 27: no native kernel


def test_row27_without_the_native_kernel_the_reference_runs(monkeypatch):
    monkeypatch.setitem(sys.modules, "mmes.kernels.native", None)
    with pytest.warns(KernelWarning, match="native kernel cannot be loaded"):
        result = mmes.minimize(hostile.sphere, *START, seed=1, max_evaluations=50)
    assert result.kernel == "reference"
    with pytest.raises(ImportError, match="kernel='native' cannot be loaded"):
        mmes.minimize(hostile.sphere, *START, kernel="native")


def test_every_row_has_a_test():
    """The table of the promises is complete: a test for each of its 35 rows, named after it."""
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    missing = [row for row in range(1, 36) if f"def test_row{row:02d}_" not in text]
    assert missing == []


def test_every_fault_of_the_first_version_has_a_test():
    """The second table names tests that there are, for each of the 27 faults."""
    tests = TESTS
    page = (tests.parent / "docs" / "reliability.md").read_text()
    table = page.split("## The faults of 0.1.0")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if re.match(r"\| \d+ \|", line)]
    assert [int(cells[0].strip("| ")) for cells in rows] == list(range(1, 28))
    for _, _, named in rows:
        found = re.findall(r"`(\S+)::(\w+)`", named)
        assert found
        for file, name in found:
            assert f"def {name}(" in (tests / file).read_text(), name
