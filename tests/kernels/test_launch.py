"""Recorded work, with a GPU that is made up: when it is recorded, replayed and forgotten."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mmes[torch]'")

from mmes.kernels import triton_launch  # noqa: E402
from mmes.kernels.triton_launch import Launch, Launcher, Uploads  # noqa: E402


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


def generation(launcher: Started, key: Any, *launches: Launch) -> None:
    if not launcher.replayed(key):
        launcher(*launches, key=key)


def test_what_came_a_few_times_is_replayed(launcher: Started) -> None:
    launches = work(), work()
    for _ in range(10):
        generation(launcher, "a", *launches)
    # Three times directly, and once more to be recorded.
    assert len(launcher.started) == 2 * (triton_launch._USUAL + 1)
    assert Graph.replays == 10 - triton_launch._USUAL
    launcher.forget()
    assert not launcher.replayed("a")


def test_a_recording_keeps_what_it_reads_and_not_what_it_writes(launcher: Started) -> None:
    launches = work(), work()
    for _ in range(5):
        generation(launcher, "a", *launches)
    (recording,) = launcher._recorded.values()
    held = [t for tensors in (*recording._held[0], recording._held[1]) for t in tensors]
    assert any(t is launches[0].tensors[0] for t in held)
    assert any(t is launches[1].tensors[1] for t in held)
    assert not any(t is launches[1].tensors[0] for t in held)


def test_work_without_a_key_is_not_recorded(launcher: Started) -> None:
    for _ in range(5):
        launcher(work())
    assert not launcher._recorded


def test_little_is_remembered(launcher: Started) -> None:
    for k in range(3 * triton_launch._REMEMBERED):
        generation(launcher, k, work())
    assert len(launcher._recorded) == triton_launch._REMEMBERED


def test_where_nothing_can_be_recorded_all_is_started(launcher: Started) -> None:
    Graph.able = False
    for _ in range(10):
        generation(launcher, "a", work())
    assert Graph.replays == 0
    assert len(launcher.started) == 10 + 1


def test_uploads_are_used_in_turn() -> None:
    uploads = Uploads(torch.device("cpu"))
    seen = []
    for k in range(triton_launch._SLOTS):
        slot = uploads.slot(5)
        slot[:5] = k
        seen.append(uploads.send())
    assert [int(tensor[4]) for tensor in seen] == list(range(triton_launch._SLOTS))
    large = uploads.slot(10_000)
    large[:] = 7
    assert int(uploads.send()[9_999]) == 7
    assert int(seen[0][0]) == 0
