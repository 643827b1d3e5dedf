"""Everything that authors of strategies, kernels, boxes and evaluators import.

The page "Your own strategy, your own problem" of the documentation shows examples.
"""

from mmes.base.options import Option
from mmes.base.randomness import Stream, normals, uniforms
from mmes.base.reasons import StopReason
from mmes.evaluate.protocol import Evaluator
from mmes.kernels import (
    DEVICE_KERNELS,
    KERNELS,
    Handle,
    Kernel,
    RecombineCall,
    ReferenceKernel,
    SampleCall,
    ScaleCall,
    StepLaw,
)
from mmes.spaces.boxes import BOXES, Box
from mmes.spaces.manifolds import Manifold
from mmes.spaces.space import Space
from mmes.strategies.parts.population import (
    POPULATION_SIZE,
    Population,
    damping_option,
    mirrored_option,
    rate_option,
)
from mmes.strategies.parts.record import Recorded
from mmes.strategies.parts.search_base import SearchBase, SearchState
from mmes.strategies.registry import STRATEGIES
from mmes.strategies.shell.ask_tell import AskTell
from mmes.strategies.shell.optimizer import Optimizer
from mmes.strategies.shell.protocol import Search, Setup

__all__ = [
    "BOXES",
    "DEVICE_KERNELS",
    "KERNELS",
    "POPULATION_SIZE",
    "STRATEGIES",
    "AskTell",
    "Box",
    "Evaluator",
    "Handle",
    "Kernel",
    "Manifold",
    "Optimizer",
    "Option",
    "Population",
    "RecombineCall",
    "Recorded",
    "ReferenceKernel",
    "SampleCall",
    "ScaleCall",
    "Search",
    "SearchBase",
    "SearchState",
    "Setup",
    "Space",
    "StepLaw",
    "StopReason",
    "Stream",
    "damping_option",
    "mirrored_option",
    "normals",
    "rate_option",
    "uniforms",
]
