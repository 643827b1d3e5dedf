"""Normals that the host makes for a GPU, those of many generations at once."""

import numpy as np
import pytest

from mmes.base import randomness
from mmes.base.randomness import Stream

pytest.importorskip("torch")


@pytest.mark.parametrize("count", [1, 92, 5000])
def test_they_are_those_of_each_generation(count):
    from mmes.kernels.gpu.torch_random import NormalsAhead

    ahead = NormalsAhead()
    asked = [0, 1, 2, 2, 3, 65, 66, 67, 5, 6, 7, *range(8, 140), 2**31]
    for generation in asked:
        found = ahead(count, 7, Stream.MIXTURE_FACTOR, generation)
        wanted = randomness.normals(count, 7, Stream.MIXTURE_FACTOR, generation)
        np.testing.assert_array_equal(found, wanted)


def test_another_sequence_is_another():
    from mmes.kernels.gpu.torch_random import NormalsAhead

    ahead = NormalsAhead()
    for generation in range(4):
        for count, seed, stream in ((3, 1, 3), (3, 2, 3), (3, 2, 7), (4, 2, 7)):
            found = ahead(count, seed, stream, generation)
            wanted = randomness.normals(count, seed, stream, generation)
            np.testing.assert_array_equal(found, wanted)


def test_generations_in_a_row_are_made_once(monkeypatch):
    from mmes.kernels.gpu import torch_random

    made = []
    genuine = torch_random.normals
    monkeypatch.setattr(torch_random, "normals", lambda *at: made.append(at) or genuine(*at))
    ahead = torch_random.NormalsAhead()
    for generation in range(100):
        ahead(92, 1, Stream.MIXTURE_FACTOR, generation)
    assert len(made) == 3  # the first, those from 1 to 64, and the next 64
