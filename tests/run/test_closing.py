"""Errors that meet at the end of a run: the first is raised, the state is saved before."""

from __future__ import annotations

import numpy as np
import pytest

import mmes
from mmes import checkpoint
from mmes.testing import hostile

START = (np.ones(6), 0.5)


class Sticky:
    """An evaluator of one's own whose `close` raises."""

    def __init__(self, raises_at=None):
        self.calls, self.closed, self.raises_at = 0, 0, raises_at

    def evaluate(self, points, generation, keep_going):
        self.calls += 1
        if self.calls == self.raises_at:
            raise ArithmeticError("the first")
        return hostile.spheres(points)

    def close(self):
        self.closed += 1
        raise OSError("the second")


class Observer:
    """A callback whose `close` raises."""

    def __call__(self, progress):
        return None

    def close(self):
        raise LookupError("the third")


def test_row40_the_first_error_is_raised_and_the_state_saved_before(tmp_path) -> None:
    """Failed before: OSError of `close`, and no checkpoint."""
    path = tmp_path / "run.mmes"
    workers = Sticky(raises_at=4)
    with pytest.raises(ArithmeticError, match="the first") as caught:
        mmes.minimize(None, *START, workers=workers, seed=1, checkpoint=path, callback=Observer())
    notes = "\n".join(caught.value.__notes__)
    assert "OSError: the second" in notes
    assert "LookupError: the third" in notes
    assert workers.closed == 1
    assert checkpoint.read(path)[0]["generations"] == 2  # x0 was the first call


def test_row40_an_error_of_close_alone_is_raised_with_the_result(tmp_path) -> None:
    path = tmp_path / "run.mmes"
    with pytest.raises(OSError, match="the second") as caught:
        mmes.minimize(None, *START, workers=Sticky(), seed=1, checkpoint=path, target=1e-3)
    assert caught.value.result.success
    assert mmes.resume(path, hostile.sphere).success


@pytest.mark.parametrize(
    "notes", [{"f": hostile.sphere}, {"x": {1, 2}}, ["a"], None, {"x": np.ones(3)}]
)
def test_row40_notes_that_json_cannot_hold_are_refused_where_they_are_set(tmp_path, notes) -> None:
    """Failed before: a bare TypeError at the first checkpoint."""
    run = mmes.Run(hostile.sphere, *START, checkpoint=tmp_path / "run.mmes", max_evaluations=50)
    with pytest.raises(TypeError, match="notes must be"):
        run.notes = notes
    assert run.notes == {}


def test_row40_notes_cannot_be_spoilt_later(tmp_path) -> None:
    path = tmp_path / "run.mmes"
    given = {"who": "me", "list": [1, 2.5, float("inf")]}
    run = mmes.Run(hostile.sphere, *START, checkpoint=path, max_evaluations=50)
    run.notes = given
    given["f"] = hostile.sphere
    run.notes["g"] = hostile.sphere
    run.run()
    assert checkpoint.read(path)[0]["notes"] == {"who": "me", "list": [1, 2.5, float("inf")]}
