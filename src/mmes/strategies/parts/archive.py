"""Stored directions with time stamps, and which of them the newest path replaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.kernels import Handle, Kernel
from mmes.kernels.short import renew


@dataclass
class Archive:
    """The stored directions with their time stamps.

    Rows of `vectors` never move; `order` lists the occupied ones by age. See `claim_row` for the
    replacement rule.

    =================  ==============  ==========================================
    field              paper           meaning
    =================  ==============  ==========================================
    vectors            q               (m, n) float32 or bfloat16, one direction per row
    stamps             t               generation in which each row was written
    order              v               rows from the oldest to the newest
    =================  ==============  ==========================================
    """

    vectors: Handle
    stamps: NDArray[np.int64]
    order: NDArray[np.int64]

    @classmethod
    def empty(cls, m: int, n: int, kernel: Kernel, dtype: str = "float32") -> Archive:
        """Return an archive without directions; its memory is not touched before use."""
        return cls(
            kernel.directions(m, n, dtype), np.zeros(m, dtype=np.int64), np.empty(0, dtype=np.int64)
        )

    def saved(self, kernel: Kernel) -> dict[str, NDArray[Any]]:
        """Return the arrays of the state, not copied: only the occupied rows."""
        filled = kernel.part(self.vectors, 0, self.order.size)
        return {"vectors": kernel.to_host(filled), "stamps": self.stamps, "order": self.order}

    def restore(self, kernel: Kernel, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore what `saved` returned.

        Raises ValueError if the arrays are inconsistent; kernels rely on them.
        """
        m, order = self.stamps.size, arrays["order"]
        if not np.array_equal(np.sort(order), np.arange(order.size)) or order.size > m:
            raise ValueError("order must list each occupied row of the archive once")
        if arrays["stamps"].shape != (m,) or arrays["vectors"].shape[0] != order.size:
            raise ValueError(
                f"the archive must have {m} stamps and {order.size} rows, "
                f"not {arrays['stamps'].shape} and {arrays['vectors'].shape}"
            )
        kernel.assign(kernel.part(self.vectors, 0, order.size), arrays["vectors"])
        self.stamps = np.array(arrays["stamps"], dtype=np.int64)
        self.order = np.array(order, dtype=np.int64)


def claim_row(archive: Archive, spacing: int, generation: int) -> int:
    """Return the row for the new path, and mark it as the newest direction.

    While the archive is not full, rows are used in order; after that, see `renew`.
    """
    order = archive.order
    if order.size < archive.stamps.size:
        row = order.size
        archive.order = np.append(order, row)
    else:
        row = renew(order, archive.stamps, spacing)
    archive.stamps[row] = generation
    return row
