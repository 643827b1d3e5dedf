"""Large-scale black-box optimization with the Mixture Model based Evolution Strategy (MMES).

>>> import mmes
>>> result = mmes.minimize(f, x0, sigma0)          # doctest: +SKIP

See `minimize` for a complete run in one call, and `MMES` for the ask-and-tell interface.
"""

from typing import TYPE_CHECKING

from mmes.base.loading import late_names
from mmes.base.reasons import StopReason
from mmes.base.version import __version__
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
from mmes.run.observing.progress import Progress
from mmes.run.result import Result
from mmes.strategies import MMES, AdaptiveMMES, RiemannianMMES

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
    from mmes.constraints import Equality
    from mmes.strategies.mmes.sampling_law import Mixture


# Imported when they are used: asyncio and ssl for the replicas would take a third of the import
# time, zipfile and hashlib for checkpoints a tenth, and the others are for few runs.
__getattr__ = late_names(
    "mmes",
    {
        "Equality": "constraints",
        "Mixture": "strategies.mmes.sampling_law",
        "checkpoint": "",
        "replicas": "",
    },
)
