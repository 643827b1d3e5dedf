"""``mmes doctor``: check the installation and estimate the memory that a run needs."""

from __future__ import annotations

import math
import os
import platform
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import mmes
from mmes.base import memory, randomness
from mmes.base.cores import usable_cores
from mmes.cli.arguments import Parser, number
from mmes.cli.status import NOT_REACHED, OK, Mistake
from mmes.errors import ReducedArchiveWarning
from mmes.kernels import native_problem
from mmes.replicas import digests
from mmes.strategies import automatic
from mmes.strategies.mmes.parameters import default_archive_size
from mmes.strategies.parts.population import default_population_size
from mmes.testing.hostile import sphere

EXTRAS = {
    "rich": ("rich", "live progress"),
    "cloudpickle": ("cloudpickle", "lambdas and notebook functions with workers"),
    "loky": ("loky", "the loky executor"),
    "dask": ("distributed", "Dask clusters"),
    "ray": ("ray", "replicas on a Ray cluster"),
    "mpi": ("mpi4py", "MPI"),
    "bench": ("polars", "mmes bench, compete and reproduce"),
    "report": ("jinja2", "mmes report"),
    "clustering": ("sklearn", "sparse spectral clustering"),
    "scipy": ("scipy", "scipy.optimize.minimize(method=...)"),
    "torch": ("torch", "PyTorch modules and searches on a GPU"),
    "jax": ("jax", "JAX losses"),
    "optuna": ("optuna", "an Optuna sampler"),
    "tqdm": ("tqdm", "progress bars as a callback"),
    "coco": ("cocoex", "mmes coco"),
}

# It uses vectors only, so its bits are the same on every processor; the default for so few
# variables uses matrices.
_FOLLOWED: dict[str, Any] = {"strategy": "mmes"}
# Bytes: an estimate must not depend on the memory of this machine.
_UNLIMITED = sys.maxsize**4
# So that its square root is a float.
_MOST_VARIABLES = 10**18
_BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def doctor(argv: list[str]) -> int:
    """Run ``mmes doctor`` and return the exit code: 1 if a check failed."""
    parser = Parser(
        prog="mmes doctor",
        description="Show what is installed, check that it works, and estimate memory.",
    )
    parser.add_argument("--dim", type=number, metavar="N", help="estimate memory for N variables")
    n = parser.parsed(argv).dim
    if n is not None and (not isinstance(n, int) or not 1 <= n <= _MOST_VARIABLES):
        raise Mistake(f"--dim must be an integer >= 1 and at most {_MOST_VARIABLES:g}, not {n!r}")
    _describe()
    healthy = check_health()
    _fingerprint()
    usable = int(memory.available_bytes() * memory.USABLE_SHARE)
    print(f"\nmemory: {memory.in_words(usable)} available for a run")
    fits = [
        print_estimate(size, usable)
        for size in ([10**3, 10**5, 10**6, 10**7] if n is None else [n])
    ]
    verdict = "All checks passed." if healthy else "Some checks failed: see above."
    if healthy and n is not None and not all(fits):
        verdict = f"All checks passed, but {n:,} variables do not fit into memory."
    print(f"\n{verdict}")
    return OK if healthy else NOT_REACHED


def _describe() -> None:
    print(f"mmes {mmes.__version__}, Python {platform.python_version()}, numpy {np.__version__}")
    print(f"{platform.system()} {platform.machine()}, {usable_cores()} usable cores")
    problem = native_problem()
    if problem is None:
        from mmes.kernels.native import simd_levels

        print(f"kernel: native, SIMD {', '.join(simd_levels())} (the first is used)")
    else:
        print(f"kernel: numpy reference, because the native one cannot be loaded: {problem}")
    print("\nextras:")
    for extra, (module, purpose) in EXTRAS.items():
        if find_spec(module) is not None:
            state = f"{module} {_version_of(module)}"
        else:
            state = f'missing; pip install "mmes[{extra}]"'
        print(f"  {extra:<12} {state:<42} for {purpose}")


def _version_of(module: str) -> str:
    # sklearn comes from scikit-learn, cocoex from coco-experiment.
    for name in (module, *metadata.packages_distributions().get(module, ())):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "(version not known)"


def check_health() -> bool:
    """Run the checks and print their outcomes; return whether all passed."""
    print("\nchecks:")
    results = [
        _report("random numbers match the specification", _random_numbers),
        _report("the native kernel agrees with the reference", _kernels_agree),
        _report("a run converges", _converges),
        _report("a resumed run gives the same result", _resumes),
        _report("worker processes give the same result", workers_agree),
        _report("replicas give the same result", _replicas_agree),
    ]
    return all(results)


def _report(what: str, check: Callable[[], bool | None]) -> bool:
    try:
        outcome = check()
        word = {True: "ok", False: "FAILED", None: "skipped"}[outcome]
    except Exception as error:  # any error is a failed check
        outcome, word = False, f"FAILED ({type(error).__name__}: {error})"
    print(f"  {what:<52} {word}")
    return outcome is not False


def _random_numbers() -> bool:
    # The test vector of Philox4x32-10 for a counter and a key of zeros.
    words = randomness.philox(np.zeros((1, 4), dtype=np.uint32), 0).ravel()
    return [f"{word:08x}" for word in words] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


def _run(**options: Any) -> mmes.Result:
    settings: dict[str, Any] = {"seed": 1, "max_evaluations": 2000} | options
    return mmes.minimize(sphere, np.ones(20), 1.0, **settings)


def _kernels_agree() -> bool | None:
    if native_problem() is not None:
        return None
    # CMA-ES, the default here, would amplify differences in the last digits.
    one, other = (_run(kernel=kernel, **_FOLLOWED) for kernel in ("native", "reference"))
    return bool(np.allclose(one.x, other.x, rtol=1e-3, atol=1e-4))


def _converges() -> bool:
    return _run(target=1e-3, max_evaluations=20_000).success


def _resumes() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.mmes"
        _run(max_evaluations=777, checkpoint=path)
        return np.array_equal(mmes.resume(path, sphere, max_evaluations=2000).x, _run().x)


def workers_agree() -> bool:
    """Return whether a run with worker processes gives the same result."""
    return np.array_equal(_run(workers=2).x, _run().x)


def _replicas_agree() -> bool:
    return np.array_equal(_run(workers=mmes.replicas.Local(2), **_FOLLOWED).x, _run(**_FOLLOWED).x)


def _fingerprint() -> None:
    """Print what must be equal on all machines with replicas, and what slows them down."""
    es = mmes.MMES(np.zeros(2), 1.0)
    print("\nreplicas:")
    fingerprint = digests.probe(mmes.MMES, digests.probe_of(es))["probe"]
    print(f"  fingerprint (must be the same on all machines): {fingerprint}")
    cores = usable_cores()
    if cores > 1 and not any(os.environ.get(name) for name in _BLAS_THREADS):
        print(
            f"  BLAS may start {cores} threads in each process; set OMP_NUM_THREADS=1 if several "
            "processes share the cores"
        )
    rows = default_population_size(10**6)
    shares = (f"{k} replicas {rows / (k * math.ceil(rows / k)):.0%}" for k in (4, 16, 32, 64))
    print(f"  time that replicas can be busy with {rows} candidates: {', '.join(shares)}")


def print_estimate(n: int, usable: int) -> bool:
    """Print how much memory n variables need; return whether they fit."""
    strategy, _ = automatic(n)  # what a run without --strategy uses
    search = strategy.search_type
    options = {option.name: option.default for option in search.options}
    _, needed = search.planned(n, options, _UNLIMITED)
    archive = "archive_size" in options
    text = (
        f"  n = {n:,}: {memory.in_words(needed)} for {strategy.name} with "
        f"{default_population_size(n)} candidates"
        + (f" and an archive of {default_archive_size(n):,} directions" if archive else "")
    )
    fits = True
    if needed > usable:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ReducedArchiveWarning)
                planned, needed = search.planned(n, options, usable)
            text += f"; reduced to {planned['archive_size']:,} ({memory.in_words(needed)})"
        except MemoryError:
            text += "; this does not fit into memory"
            fits = False
    print(text)
    return fits
