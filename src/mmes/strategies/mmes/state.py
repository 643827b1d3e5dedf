"""The state of MMES between two generations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmes.kernels import Handle
from mmes.strategies.parts.archive import Archive


@dataclass
class State:
    """What MMES carries from one generation to the next.

    ==================  ====================  ================================================
    field               paper                 meaning
    ==================  ====================  ================================================
    mean                m                     centre of the search
    sigma               sigma                 mutation strength
    path                p                     evolution path, zero at the start
    archive             q, t, v               stored directions
    previous            f_{i:lambda}^(g-1)    the mu best values of the generation before
    success             W                     smoothed statistic of the paired test
    concordance         C (beyond the paper)  whether pairs are ranked oppositely (1) or alike
    scale               d (beyond the paper)  one scale per variable; None means ones
    noise_path          (beyond the paper)    path of the isotropic parts; None: not followed
    lessons             q (beyond the paper)  path of lessons about the scales; None: not followed
    scale_rate          (beyond the paper)    factor of c_d
    shift               (beyond the paper)    last shift of the mean; None: there are no probes
    progress            s (beyond the paper)  smoothed advantage of the probe ahead
    rising              (beyond the paper)    generations until directions are learnt, with probes
    largest_sigma       (beyond the paper)    the largest sigma so far, with probes
    ==================  ====================  ================================================

    Vectors of length n are the kernel's; nothing else looks into them.
    """

    mean: Handle
    sigma: float
    path: Handle
    archive: Archive
    previous: NDArray[np.float64]
    success: float = 0.0
    concordance: float = -0.5
    scale: Handle | None = None
    noise_path: Handle | None = None
    lessons: Handle | None = None
    scale_rate: float = 1.0
    shift: Handle | None = None
    progress: float = 0.0
    rising: int = 0
    largest_sigma: float = 0.0
