"""The state of MMES between two generations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass
class Archive:
    """The stored directions with their time stamps.

    Rows of `vectors` never move; `order` lists the occupied ones by age. See `directions` for the
    replacement rule.

    =================  ==============  ==========================================
    field              paper           meaning
    =================  ==============  ==========================================
    vectors            q               (m, n) float32, one direction a row
    stamps             t               generation in which each row was written
    order              v               rows from the oldest to the newest
    =================  ==============  ==========================================
    """

    vectors: NDArray[np.float32]
    stamps: NDArray[np.int64]
    order: NDArray[np.int64]

    @classmethod
    def empty(cls, m: int, n: int) -> Archive:
        """Return an archive without directions; its memory is not touched before it is used."""
        return cls(
            np.zeros((m, n), dtype=np.float32),
            np.zeros(m, dtype=np.int64),
            np.empty(0, dtype=np.int64),
        )


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
    success             W                     smoothed statistic of the paired test
    previous            f_{i:lambda}^(g-1)    the mu best values of the generation before
    scale               d (section 5 of the   one scale a variable; None stands for ones
                        specification)
    ==================  ====================  ================================================

    Arrays of length n are handles for the kernel; nothing else looks into them.
    """

    mean: NDArray[np.float64]
    sigma: float
    path: NDArray[np.float64]
    archive: Archive
    previous: NDArray[np.float64]
    success: float = 0.0
    scale: NDArray[np.float64] | None = None

    def scalars(self) -> dict[str, Any]:
        """Return what a checkpoint writes as text."""
        return {"sigma": self.sigma, "success": self.success}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a checkpoint writes as arrays."""
        found: dict[str, NDArray[Any]] = {
            "mean": self.mean,
            "path": self.path,
            "previous": self.previous,
            "archive": self.archive.vectors[: self.archive.order.size],
            "stamps": self.archive.stamps,
            "order": self.archive.order,
        }
        if self.scale is not None:
            found["scale"] = self.scale
        return found

    @classmethod
    def restored(
        cls,
        scalars: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
        archive_size: int,
        parents: int,
    ) -> State:
        """Return the state that `scalars` and `arrays` were taken from, on fresh memory.

        Raises
        ------
        ValueError
            If the arrays do not fit together; kernels rely on it that they do.
        """
        mean = np.array(arrays["mean"], dtype=np.float64)
        shapes = {
            "mean": (mean.size,),
            "path": (mean.size,),
            "previous": (parents,),
            "stamps": (archive_size,),
            "archive": (arrays["order"].size, mean.size),
            "scale": (mean.size,),
        }
        for name, shape in shapes.items():
            if name in arrays and arrays[name].shape != shape:
                raise ValueError(f"{name} must have the shape {shape}, not {arrays[name].shape}")
        rows = np.sort(arrays["order"])
        if rows.size > archive_size or not np.array_equal(rows, np.arange(rows.size)):
            raise ValueError("order must list each occupied row of the archive once")
        archive = Archive.empty(archive_size, mean.size)
        filled = np.asarray(arrays["archive"], dtype=np.float32)
        archive.vectors[: filled.shape[0]] = filled
        archive.stamps[:] = arrays["stamps"]
        archive.order = np.array(arrays["order"], dtype=np.int64)
        scale = arrays.get("scale")
        return cls(
            mean=mean,
            sigma=float(scalars["sigma"]),
            path=np.array(arrays["path"], dtype=np.float64),
            archive=archive,
            previous=np.array(arrays["previous"], dtype=np.float64),
            success=float(scalars["success"]),
            scale=None if scale is None else np.array(scale, dtype=np.float64),
        )
