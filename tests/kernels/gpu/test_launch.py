"""Recorded work, with a GPU that is made up: when it is recorded, replayed and forgotten."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mmes[torch]'")

from mmes.kernels.gpu import triton_launch  # noqa: E402
from mmes.kernels.gpu.triton_launch import Launch, Launcher  # noqa: E402
from mmes.kernels.gpu.triton_mail import Arrivals, Flow, Upload  # noqa: E402


class Graph:
    """Counts its replays."""

    able = True
    replays = 0

    def capture_begin(self, capture_error_mode: str) -> None:
        assert capture_error_mode == "thread_local"

    def capture_end(self) -> None:
        if not Graph.able:
            raise RuntimeError("operation not permitted when stream is capturing")

    def replay(self) -> None:
        Graph.replays += 1


class Started(Launcher):
    """A launcher that counts what it starts."""

    def __init__(self) -> None:
        super().__init__(torch.device("cpu"))
        self._records = True
        self.started: list[Launch] = []

    def _start(self, launch: Launch) -> None:
        self.started.append(launch)


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> Started:
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(Graph, "able", True)
    monkeypatch.setattr(Graph, "replays", 0)
    return Started()


def work(target: Any = None) -> Launch:
    target = torch.zeros(3) if target is None else target
    return Launch(None, (1,), (target, torch.zeros(2)), (3,), {})


UPLOAD = Upload(Flow(torch.device("cpu")))


def generation(launcher: Started, key: Any, *launches: Launch) -> None:
    if not launcher.replayed(UPLOAD, key):
        launcher(UPLOAD, *launches, key=key)


def test_what_came_a_few_times_is_replayed(launcher: Started) -> None:
    launches = work(), work()
    for _ in range(10):
        generation(launcher, "a", *launches)
    # Three times directly, and once more to be recorded.
    assert len(launcher.started) == 2 * (triton_launch.USUAL + 1)
    assert Graph.replays == 10 - triton_launch.USUAL
    launcher.forget()
    assert not launcher.replayed(UPLOAD, "a")


def test_a_recording_keeps_what_it_reads_and_not_what_it_writes(launcher: Started) -> None:
    launches = work(), work()
    for _ in range(5):
        generation(launcher, "a", *launches)
    (recording,) = launcher.recorded.values()
    held = [t for tensors in (*recording.held[0], recording.held[1]) for t in tensors]
    assert any(t is launches[0].tensors[0] for t in held)
    assert any(t is launches[1].tensors[1] for t in held)
    assert not any(t is launches[1].tensors[0] for t in held)


def test_work_without_a_key_is_not_recorded(launcher: Started) -> None:
    for _ in range(5):
        launcher(UPLOAD, work())
    assert not launcher.recorded


def test_little_is_remembered(launcher: Started) -> None:
    for k in range(3 * triton_launch.REMEMBERED):
        generation(launcher, k, work())
    assert len(launcher.recorded) == triton_launch.REMEMBERED


def test_where_nothing_can_be_recorded_all_is_started(launcher: Started) -> None:
    Graph.able = False
    for _ in range(10):
        generation(launcher, "a", work())
    assert Graph.replays == 0
    assert len(launcher.started) == 10 + 1


class Watched(Flow):
    """A GPU that is made up: counts how often it is waited for."""

    def __init__(self) -> None:
        super().__init__(torch.device("cpu"))
        self.waits = 0

    def wait(self) -> None:
        self.waits += 1
        super().wait()


def test_numbers_are_written_after_the_last_ones_were_taken() -> None:
    flow = Watched()
    upload, other = Upload(flow), Upload(flow)
    for k in range(3):
        upload.open(300)
        upload.head((7 << 40) + 5, k, (0.5, 1.5, 2.5), 11)
        upload.whole[7:300] = k
        upload.sent()
        assert upload.there[:3].tolist() == [5, 7 << 8, k]
        assert upload.real[3:6].tolist() == [0.5, 1.5, 2.5]
        assert upload.there[6:8].tolist() == [11, k]
        other.open(10)  # its own memory
        assert flow.waits == k
        other.sent()
    flow.arrived()  # everything sent before the values has been taken
    upload.open(300)
    assert flow.waits == 2
    before = upload.address
    upload.sent()
    upload.open(10_000)
    assert flow.waits == 3
    assert upload.address != before
    assert upload.there.numel() >= 10_000


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_arrive_in_double_precision(dtype: torch.dtype) -> None:
    flow = Watched()
    arrivals = Arrivals(flow)
    for size in (3, 3, 5):
        values = torch.rand(size, dtype=dtype)
        values[0], values[1] = float("nan"), float("-inf")
        found = arrivals.fetched(values.clone().requires_grad_())
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, values.numpy())
    assert flow.waits == 0
    kept = found.copy()
    arrivals.fetched(torch.rand(5, dtype=dtype))
    np.testing.assert_array_equal(found, kept)


def test_values_that_do_not_come_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = Watched()
    arrivals = Arrivals(flow)
    values = torch.rand(4)
    room = arrivals.awaited(values)
    room[:2] = values[:2]  # the others are still on their way

    def come() -> None:
        flow.waits += 1
        room[:] = values

    monkeypatch.setattr(flow, "wait", come)
    assert arrivals.fetched(values).tolist() == values.tolist()
    assert flow.waits == 1


class Elsewhere:
    """A tensor on a GPU that is not the kernel's, as far as the door can tell."""

    device, dtype = "cuda:1", torch.float32

    def detach(self) -> Elsewhere:
        return self

    def cpu(self) -> torch.Tensor:
        return torch.tensor([3.0, 1.0, 2.0])


def test_values_of_another_device_come_through_the_one_door(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mmes.strategies.shell.pending import received

    flow = Watched()
    arrivals = Arrivals(flow)
    away = Elsewhere()
    assert arrivals.fetched(away) is away
    assert flow.waits == 1
    assert received(None, away, None, 3)[1].tolist() == [3.0, 1.0, 2.0]
    # A tensor that says that it lies on the second GPU, while the kernel's is the first.
    monkeypatch.setattr(flow, "index", 0)
    for values in (torch.rand(3), torch.rand(3, 1), torch.arange(3), [1.0, 2.0, 3.0]):
        assert arrivals.fetched(values) is values
