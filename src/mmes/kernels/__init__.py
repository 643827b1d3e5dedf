"""Kernels: all that touches vectors of length n.

`reference` is the numpy reading copy, the fallback and the oracle; `native` is the same in C++.
Both fulfil `Kernel`.
"""

from mmes.kernels.choose import choose_kernel, native_problem
from mmes.kernels.protocol import Box, Kernel, Noise, ReducingKernel, StepLaw
from mmes.kernels.reference import ReferenceKernel

__all__ = [
    "Box",
    "Kernel",
    "Noise",
    "ReducingKernel",
    "ReferenceKernel",
    "StepLaw",
    "choose_kernel",
    "native_problem",
]
