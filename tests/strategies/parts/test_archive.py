"""Which direction makes room: the replacement rule of the archive."""

from __future__ import annotations

import numpy as np
import pytest

from mmes.kernels import ReferenceKernel
from mmes.strategies.parts.archive import Archive, claim_row


def filled(stamps: list[int]) -> Archive:
    archive = Archive.empty(len(stamps), 2, ReferenceKernel())
    for stamp in stamps:
        claim_row(archive, 1000, stamp)
    return archive


def test_the_archive_fills_row_by_row() -> None:
    archive = Archive.empty(4, 2, ReferenceKernel())
    assert [claim_row(archive, 5, g) for g in range(4)] == [0, 1, 2, 3]
    np.testing.assert_array_equal(archive.order, [0, 1, 2, 3])
    np.testing.assert_array_equal(archive.stamps, [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("stamps", "spacing", "dropped"),
    [
        ([0, 10, 20, 30], 9, 0),  # every gap exceeds T: the oldest goes
        ([0, 10, 20, 30], 10, 1),  # N.B. a gap equal to T does not count as far enough apart
        ([0, 10, 13, 30], 20, 2),  # the later member of the closest pair
        ([0, 5, 10, 30], 20, 1),  # the first of two equally close pairs
        ([0, 10, 20, 21], 20, 3),
    ],
)
def test_who_makes_room(stamps: list[int], spacing: int, dropped: int) -> None:
    archive = filled(stamps)
    assert claim_row(archive, spacing, 40) == dropped
    expected = [row for row in range(4) if row != dropped] + [dropped]
    np.testing.assert_array_equal(archive.order, expected)
    assert archive.stamps[dropped] == 40


def test_a_single_slot_is_always_renewed() -> None:
    archive = filled([0])
    assert [claim_row(archive, 3, g) for g in range(1, 5)] == [0, 0, 0, 0]


def test_old_directions_settle_at_the_wanted_distance() -> None:
    """In the long run all but the newest few gaps are T or T + 1 generations wide."""
    archive, spacing = Archive.empty(8, 1, ReferenceKernel()), 12
    for generation in range(2000):
        claim_row(archive, spacing, generation)
    gaps = np.diff(archive.stamps[archive.order])
    assert (gaps > 0).all()
    assert set(gaps[:5]) <= {spacing + 1}
