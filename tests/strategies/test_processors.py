"""The same bits on every processor: other ones are imitated by what numpy and BLAS may use."""

import os
import subprocess
import sys

import pytest

from mmes.kernels import native_problem
from mmes.strategies import STRATEGIES

CHILD = """
import hashlib, sys
import numpy as np
from mmes.kernels import native
level, names = sys.argv[1], sys.argv[2:]
native.simd_levels = lambda: [level]
from mmes.strategies import STRATEGIES
from mmes.base.randomness import Stream, uniforms
digest = hashlib.blake2b()
for name in names:
    for rows in (24, 38, 45, 101) if name == "mmes" else (45,):
        es = STRATEGIES[name](np.linspace(-1, 2, 60), 0.5, seed=3, kernel="native",
                              population_size=rows, stagnation_window="off")
        assert es.kernel.name == f"native {level}"
        for generation in range(400 if name == "mmes" else 150):
            points = es.ask()
            digest.update(np.ascontiguousarray(points).tobytes())
            # Not an objective's values: its rounding would play a part.
            es.tell(uniforms(len(points), rows, Stream.CHILD_SEED, generation))
            digest.update(es.sigma.hex().encode())
print(digest.hexdigest())
"""
PROCESSORS = {
    "as it is": {},
    "BLAS of Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "BLAS of Prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "numpy without AVX-512": {"NPY_DISABLE_CPU_FEATURES": "X86_V4"},
}


def digest(level, variables, names):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, level, *names],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=250,
    )
    if done.returncode and "NPY_DISABLE_CPU_FEATURES" in done.stderr:
        return None  # this processor has nothing to be switched off
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(native_problem() is not None, reason="the native kernel is not there")
def test_no_bit_depends_on_the_processor():
    from mmes.kernels.native import simd_levels

    names = [name for name, kind in STRATEGIES.items() if kind.search_type.replicable]
    # Without a fused multiply-add the C library computes it: the same bits, but slowly.
    levels = [level for level in simd_levels() if level in ("avx512", "avx2", "neon")]
    if not levels:
        pytest.skip("this processor has no fused multiply-add")
    found = {
        (level, name): digest(level, variables, names)
        for level in levels
        for name, variables in PROCESSORS.items()
    }
    assert len({value for value in found.values() if value is not None}) == 1, found
