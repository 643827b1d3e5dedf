"""Kernels: all operations on vectors of length n.

`reference` is readable numpy, the fallback and the oracle; `native` is the same in C++; `torch`
keeps the vectors on a device. All implement `Kernel`.
"""

from typing import TYPE_CHECKING

from mmes.base.loading import late_names
from mmes.kernels.choose import (
    DEVICE_KERNELS,
    KERNELS,
    Precision,
    choose_kernel,
    native_problem,
)
from mmes.kernels.devices import Place
from mmes.kernels.protocol import (
    KEPT_NOISE_BYTES,
    DrawnRows,
    Handle,
    Kernel,
    Lessons,
    Noise,
    NoiseWithin,
    PathCall,
    RecombineCall,
    ReducingKernel,
    SampleCall,
    ScaleCall,
    StepLaw,
)

if TYPE_CHECKING:
    from mmes.kernels.reference import ReferenceKernel

__all__ = [
    "DEVICE_KERNELS",
    "KEPT_NOISE_BYTES",
    "KERNELS",
    "DrawnRows",
    "Handle",
    "Kernel",
    "Lessons",
    "Noise",
    "NoiseWithin",
    "PathCall",
    "Place",
    "Precision",
    "RecombineCall",
    "ReducingKernel",
    "ReferenceKernel",
    "SampleCall",
    "ScaleCall",
    "StepLaw",
    "choose_kernel",
    "native_problem",
]

__getattr__ = late_names("mmes.kernels", {"ReferenceKernel": "reference"})
