"""Which stored direction makes room for the newest path."""

from __future__ import annotations

import numpy as np

from mmes.strategies.mmes.state import Archive


def claim_row(archive: Archive, spacing: int, generation: int) -> int:
    """Return the row that the new path goes to, and enter it as the newest direction.

    While the archive fills, rows are taken in turn. After that, the later member of the closest
    pair of neighbours goes (the first such pair), so that the others keep their distance; but once
    all neighbours lie more than T = `spacing` generations apart, the oldest goes.
    """
    m = archive.stamps.size
    order = archive.order
    if order.size < m:
        row = order.size
        archive.order = np.append(order, row)
    else:
        place = 0
        if m > 1:
            stamps = archive.stamps[order]
            gaps = stamps[1:] - stamps[:-1]
            closest = int(gaps.argmin())
            # N.B. the pseudo-code drops the oldest at a gap >= T, the text keeps a gap "no larger
            # than T"; the published figures come out with > T (test_directions.py pins it).
            place = 0 if gaps[closest] > spacing else closest + 1
        row = int(order[place])
        order[place:-1] = order[place + 1 :]
        order[-1] = row
    archive.stamps[row] = generation
    return row
