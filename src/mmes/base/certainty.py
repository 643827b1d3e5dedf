"""When values differ by more than rounding, and how far an average of few values is from sure."""

from __future__ import annotations

from array import array

ROUNDING = 1e-9
"""Values that differ by at most this share of their size may be the same: in a batch of another
size sums are rounded otherwise."""
_SINGLE_ROUNDING = 1e-6
# Whole numbers up to this are counts rather than numbers of single precision.
_LARGEST_COUNT = 2.0**23


def share_of_rounding(*values: float) -> float:
    """Return by what share of their size these values may differ and be the same.

    More if all of them are numbers of single precision, as the losses of networks are. Who returned
    them may have converted them: their digits say it, not their type.
    """
    single = array("f", values).tolist() == list(values)
    counts = all(value.is_integer() and abs(value) <= _LARGEST_COUNT for value in values)
    return _SINGLE_ROUNDING if single and not counts else ROUNDING


def student(z: float, freedom: int) -> float:
    """Return what Student's t exceeds as often as a normal number exceeds z standard deviations.

    By the first terms of its expansion: z = 2 is exceeded in 2.3 % of all cases, and what is
    returned for it in 4.2, 2.8 and 2.5 % with one, two and three degrees of freedom.
    """
    v = max(freedom, 1)
    return z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v * v)
