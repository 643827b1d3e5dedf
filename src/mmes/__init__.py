"""Large-scale black-box optimization with the Mixture Model based Evolution Strategy (MMES).

>>> import mmes
>>> result = mmes.minimize(f, x0, sigma0)          # doctest: +SKIP

See `minimize` for a complete run in one call, and `MMES` for the ask-and-tell interface.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mmes.base.reasons import StopReason
from mmes.base.version import __version__
from mmes.constraints.given import Equality
from mmes.errors import (
    CheckpointCorrupt,
    CheckpointError,
    CheckpointExists,
    CheckpointTooNew,
    EvaluationError,
    MMESError,
    MMESWarning,
    TellError,
    Terminated,
)
from mmes.evaluate.factory import Factory
from mmes.minimize import Run, minimize, options, resume
from mmes.run.progress import Progress
from mmes.run.result import Result
from mmes.strategies import MMES, AdaptiveMMES, RiemannianMMES
from mmes.strategies.mmes.mixture import Mixture

__all__ = [
    "MMES",
    "AdaptiveMMES",
    "CheckpointCorrupt",
    "CheckpointError",
    "CheckpointExists",
    "CheckpointTooNew",
    "Equality",
    "EvaluationError",
    "Factory",
    "MMESError",
    "MMESWarning",
    "Mixture",
    "Progress",
    "Result",
    "RiemannianMMES",
    "Run",
    "StopReason",
    "TellError",
    "Terminated",
    "__version__",
    "minimize",
    "options",
    "replicas",
    "resume",
]

if TYPE_CHECKING:
    from mmes import checkpoint as checkpoint
    from mmes import replicas


def __getattr__(name: str) -> Any:
    # Imported when they are used: asyncio and ssl for the one would take a third of the import
    # time, zipfile and hashlib for the other a tenth.
    if name in ("checkpoint", "replicas"):
        return import_module(f"mmes.{name}")
    raise AttributeError(f"module 'mmes' has no attribute {name!r}")
