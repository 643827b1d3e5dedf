"""Large-scale black-box optimization with the Mixture Model based Evolution Strategy (MMES).

>>> import mmes
>>> result = mmes.minimize(f, x0, sigma0)          # doctest: +SKIP

See `minimize` for one call that does it all and `MMES` for asking and telling by hand.
"""

from mmes.errors import EvaluationError, MMESError, MMESWarning, TellError
from mmes.minimize import Run, minimize
from mmes.mixture import Mixture
from mmes.observe import Progress
from mmes.result import Result
from mmes.stopping import StopReason
from mmes.strategies import MMES, RiemannianMMES

__version__ = "0.1.0"

__all__ = [
    "MMES",
    "EvaluationError",
    "MMESError",
    "MMESWarning",
    "Mixture",
    "Progress",
    "Result",
    "RiemannianMMES",
    "Run",
    "StopReason",
    "TellError",
    "__version__",
    "minimize",
]
