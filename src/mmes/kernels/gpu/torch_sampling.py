"""The candidates of a generation in torch operations, a span of the coordinates at a time."""
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mmes.kernels.protocol import SampleCall


class Sampling:
    """What makes candidates of a call; small arrays are brought to the device once.

    The kernel draws the rows that are mixed, and the isotropic parts. Population and rows of the
    call are not looked at: `candidates` are those wanted.
    """

    def __init__(self, kernel: Any, call: SampleCall, candidates: NDArray[np.int64]):
        law = call.law
        rows, factors = law.rows, law.factors
        if law.drawn is not None:
            rows, factors = kernel.drawn_rows(law.drawn, call.draws, call.seed, call.generation)
        self._kernel, self._call = kernel, call
        self._drawn, of_row = np.unique(candidates % call.draws, return_inverse=True)
        signs = np.where(candidates < call.draws, call.sigma, -call.sigma)
        self._signs, self._of_row = kernel.tensor(signs)[:, None], kernel.tensor(of_row)
        self._isotropic: Any = float(np.float32(law.isotropic))
        if law.isotropic_each is not None:
            self._isotropic = kernel.tensor(law.isotropic_each[self._drawn])[:, None]
        self._mixed: list[tuple[torch.Tensor, torch.Tensor]] = []
        if rows is not None and factors is not None and call.directions is not None:
            there = np.where(rows < 0, np.float32(0), factors)[self._drawn]
            self._mixed = [
                (kernel.tensor(np.maximum(row, 0)), kernel.tensor(weight)[:, None])
                for row, weight in zip(rows[self._drawn].T, there.T, strict=True)
            ]

    def points(self, first: int, last: int) -> torch.Tensor:
        """Return the entries of this span, one candidate per row, in float64 and outside any box.

        `first` begins a chunk of random words.
        """
        call, law = self._call, self._call.law
        address = call.seed, call.generation
        z = self._kernel.parts(law.noise, self._drawn, (first, last), address)
        z *= self._isotropic
        scale = None if law.scale is None else law.scale[first:last].to(torch.float32)
        if scale is not None and not law.scale_rows:
            z *= scale
        for row, weight in self._mixed:
            z += weight * call.directions[row, first:last]  # type: ignore[index]
        if scale is not None and law.scale_rows:
            z *= scale
        centre = call.mean[first:last].to(torch.float64)
        return centre + self._signs * z.to(torch.float64)[self._of_row]
