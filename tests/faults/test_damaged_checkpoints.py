"""Promises about checkpoints: damaged files, row 13."""

import hashlib
import json
import random
import warnings

import numpy as np
import pytest

import mmes
from damage import mutated
from mmes import checkpoint
from mmes.errors import CheckpointWarning
from mmes.testing import hostile

START = (np.ones(6), 0.5)


def loads_right_or_not_at_all(path, data, expected):
    """Return what became of a damaged file: 'same' or 'corrupt'; anything else raises."""
    path.write_bytes(data)
    try:
        state, arrays = checkpoint.read(path)
    except mmes.CheckpointCorrupt as error:
        message = str(error)
    else:
        assert fingerprint(state, arrays) == expected
        return "same"
    assert str(path) in message
    return "corrupt"


def fingerprint(state, arrays):
    digest = hashlib.sha256(json.dumps(state, sort_keys=True).encode())
    for name, array in arrays.items():
        digest.update(name.encode() + str((array.dtype, array.shape)).encode() + array.tobytes())
    return digest.hexdigest()


def test_row13_every_flipped_byte_and_every_cut_is_found(saved):
    data = saved.read_bytes()
    expected = fingerprint(*checkpoint.read(saved))
    outcomes = []
    for place in range(0, len(data), 97):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        outcomes.append(loads_right_or_not_at_all(saved, bytes(damaged), expected))
    for length in range(0, len(data), 4096):
        assert loads_right_or_not_at_all(saved, data[:length], expected) == "corrupt"
    assert loads_right_or_not_at_all(saved, data[:-1], expected) == "corrupt"
    # Only fields that say nothing about the content, such as times, may change unnoticed.
    assert outcomes.count("corrupt") > 0.8 * len(outcomes)


def fuzz(saved, count, seed):
    rng = random.Random(seed)
    data = saved.read_bytes()
    expected = fingerprint(*checkpoint.read(saved))
    outcomes = [
        loads_right_or_not_at_all(saved, mutated(data, rng), expected) for _ in range(count)
    ]
    assert outcomes.count("corrupt") > 0.5 * count
    return outcomes


def test_row13_five_hundred_mutations(saved):
    fuzz(saved, 500, 3)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_row13_three_thousand_mutations(saved):
    fuzz(saved, 3_000, 4)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_row13_three_thousand_mutations_fall_back(saved):
    """With a good one before it, a damaged checkpoint never stops a run."""
    rng = random.Random(5)
    data = saved.read_bytes()
    checkpoint.previous_path(saved).write_bytes(data)
    expected = fingerprint(*checkpoint.read(saved))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckpointWarning)
        for _ in range(3_000):
            saved.write_bytes(mutated(data, rng))
            assert fingerprint(*checkpoint.read(saved)) == expected


def test_row13_the_previous_one_is_taken_with_a_warning(tmp_path, same):
    path = tmp_path / "run.mmes"
    options = {"seed": 5, "max_evaluations": 300}
    mmes.minimize(hostile.sphere, *START, checkpoint=path, checkpoint_generations=3, **options)
    data = bytearray(path.read_bytes())
    for at in range(len(data) // 2, len(data) // 2 + 64):  # longer than the padding of an array
        data[at] ^= 1
    path.write_bytes(data)
    with pytest.warns(CheckpointWarning, match=r"run\.mmes cannot be used .*corrupt.* is used"):
        result = mmes.resume(path, hostile.sphere)
    same(result, mmes.minimize(hostile.sphere, *START, **options))
    assert mmes.resume(path, hostile.sphere).nfev == 300  # and the damaged one was replaced


def test_row13_when_both_are_damaged_both_are_named(saved):
    saved.write_bytes(b"nothing of the sort")
    checkpoint.previous_path(saved).write_bytes(b"")
    with pytest.raises(mmes.CheckpointCorrupt, match=r"run\.mmes is corrupt.*run\.mmes\.previous"):
        mmes.resume(saved, hostile.sphere)
