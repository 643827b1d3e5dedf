"""What an installed wheel must be able to do, with numpy alone; run from another folder."""

import sys

import numpy as np

import mmes
from mmes import problems
from mmes.kernels import native_problem

assert native_problem() is None, native_problem()
assert "site-packages" in mmes.__file__, mmes.__file__
cigar = problems.get("cigar", dimension=100)
r = mmes.minimize(cigar, np.ones(100), 1.0, strategy="mmes", vectorized=True, target=1e-8, seed=1)
assert r.success, r
assert r.kernel.startswith("native"), r
assert problems.get("lsgo2013/f7")(np.zeros(1000)) > 0
assert not {"scipy", "matplotlib", "polars"} & set(sys.modules)
print("works", r.nfev)
