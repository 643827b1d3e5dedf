"""A resumed run goes on with its kernel, or says that it cannot."""

from __future__ import annotations

import numpy as np
import pytest

import mmes
from mmes.errors import KernelWarning
from mmes.testing import hostile

START = (np.linspace(1, 2, 40), 0.5)
OPTIONS = {"strategy": "mmes", "seed": 3}


def test_row42_the_kernel_stays(tmp_path) -> None:
    """Failed before: silently the native one, with other bits."""
    path = tmp_path / "run.mmes"
    chosen = OPTIONS | {"kernel": "reference"}
    whole = mmes.minimize(hostile.sphere, *START, max_evaluations=900, **chosen)
    mmes.minimize(hostile.sphere, *START, max_evaluations=400, checkpoint=path, **chosen)
    result = mmes.resume(path, hostile.sphere, max_evaluations=900)
    assert result.kernel == whole.kernel
    np.testing.assert_array_equal(result.mean, whole.mean)


def test_row42_another_kernel_is_taken_where_it_is_asked_for(tmp_path) -> None:
    path = tmp_path / "run.mmes"
    chosen = OPTIONS | {"kernel": "native"}
    native = mmes.minimize(hostile.sphere, *START, max_evaluations=400, checkpoint=path, **chosen)
    other = mmes.resume(path, hostile.sphere, max_evaluations=450, kernel="reference")
    assert other.kernel != native.kernel


@pytest.mark.filterwarnings("ignore:the native kernel cannot be loaded")
def test_row42_a_kernel_that_cannot_be_had_is_told(tmp_path, monkeypatch) -> None:
    path = tmp_path / "run.mmes"
    chosen = OPTIONS | {"kernel": "native"}
    mmes.minimize(hostile.sphere, *START, max_evaluations=400, checkpoint=path, **chosen)
    for module in ("mmes.run.resuming", "mmes.kernels.choose"):
        monkeypatch.setattr(f"{module}.native_problem", lambda: "no such file")
    with pytest.warns(KernelWarning, match="started with kernel='native'.*no such file"):
        result = mmes.resume(path, hostile.sphere, max_evaluations=450)
    assert result.nfev == 450
