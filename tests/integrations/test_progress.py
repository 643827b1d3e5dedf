"""Progress bars and loggers."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

import mmes
from mmes.integrations.progress import LoggingWarning, every, log_to, tqdm_bar

X0 = [1.0] * 10


def f(x: Any) -> float:
    return float(x @ x)


class Writer:
    def __init__(self) -> None:
        self.lines: list[tuple[str, Any, int]] = []

    def add_scalar(self, name: str, value: Any, step: int) -> None:
        self.lines.append((name, value, step))


def test_the_lines_of_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    writer = Writer()
    mmes.minimize(f, X0, 0.5, callback=tqdm_bar(), max_evaluations=101, seed=1)
    assert "101/101" in capsys.readouterr().err
    both = [tqdm_bar(), every(10, log_to(writer.add_scalar))]
    r = mmes.minimize(f, X0, 0.5, callback=both, max_evaluations=101, seed=1)
    assert writer.lines[-1][2] == 101
    assert dict(line[:2] for line in writer.lines)["mmes/best_value"] == r.fun
    logged: list[Any] = []
    log = every(10, lambda p: logged.append((p.scalars(), p.evaluations)))
    mmes.minimize(f, X0, 0.5, callback=log, max_evaluations=101, seed=1)
    assert logged[-1][0]["evaluations"] == logged[-1][1] == 101
    mmes.minimize(f, X0, 0.5, progress=True, max_evaluations=101, seed=1)
    assert "101" in capsys.readouterr().err


def test_a_real_tensorboard_writer(tmp_path: Any) -> None:
    tensorboard = pytest.importorskip("tensorboardX")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        mmes.minimize(f, X0, 0.5, callback=log_to(writer.add_scalar), max_evaluations=100, seed=1)
    (events,) = tmp_path.iterdir()
    assert b"mmes/best_value" in events.read_bytes()


def test_every_counts_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("mmes.integrations.progress.time.monotonic", lambda: clock[0])
    seen: list[int] = []

    class Observer:
        closed = 0

        def __call__(self, progress: Any) -> bool:
            seen.append(progress.evaluations)
            return len(seen) == 4

        def close(self) -> None:
            self.closed += 1

    observer = Observer()
    wrapped = every(10, observer)

    class At:
        def __init__(self, evaluations: int, final: bool = False):
            self.evaluations, self.final = evaluations, final

    answers = []
    for moment in (0, 3, 9.9, 10, 11, 30, 31):
        clock[0] = float(moment)
        answers.append(wrapped(At(int(moment))))  # type: ignore[arg-type]
    assert seen == [0, 10, 30]
    assert wrapped(At(32, final=True)) is True  # type: ignore[arg-type]
    assert seen[-1] == 32
    assert answers.count(None) == 4
    wrapped.close()  # type: ignore[attr-defined]
    assert observer.closed == 1


def test_every_ends_the_run_as_its_callback_does() -> None:
    r = mmes.minimize(f, X0, 0.5, callback=every(0, lambda p: True), seed=1)
    assert r.reason is mmes.StopReason.CALLBACK
    assert r.nit == 1


def test_a_logger_that_fails() -> None:
    def fails(name: str, value: Any, step: int) -> None:
        raise ConnectionError("no network")

    with pytest.raises(ConnectionError):
        mmes.minimize(f, X0, 0.5, callback=log_to(fails), max_evaluations=100)
    with pytest.warns(LoggingWarning, match="no network") as caught:
        r = mmes.minimize(f, X0, 0.5, callback=log_to(fails, errors="warn"), max_evaluations=100)
    assert len(caught) == 1
    assert r.nfev == 100


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: every(-1, print), ValueError),
        (lambda: every(float("nan"), print), ValueError),
        (lambda: every(1, None), TypeError),  # type: ignore[arg-type]
        (lambda: log_to(None), TypeError),  # type: ignore[arg-type]
        (lambda: log_to(print, errors="ignore"), ValueError),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments(make: Any, kind: Any) -> None:
    with pytest.raises(kind):
        make()


def test_a_bar_is_closed_even_if_the_run_fails() -> None:
    pytest.importorskip("tqdm")
    shown = io.StringIO()
    bar = tqdm_bar(file=shown, desc="here")

    counted = list(range(40))

    def sometimes(x: Any) -> float:
        if counted.pop() == 0:
            raise ArithmeticError
        return f(x)

    with pytest.raises(mmes.EvaluationError):
        mmes.minimize(sometimes, X0, 0.5, callback=bar, seed=1)
    assert "here" in shown.getvalue()
    assert shown.getvalue().endswith("\n")  # the bar is closed
    mmes.minimize(f, X0, 0.5, callback=bar, max_evaluations=50, seed=1)  # a second bar
    assert "50/50" in shown.getvalue()


def test_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "tqdm"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"mmes\[tqdm\]"):
        tqdm_bar()
