"""The display: what its line says, how often it comes, and `progress=True`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import mmes
from mmes.run.observing.progress import Progress
from mmes.run.observing.progress_line import Display, duration
from terminal import all_of

PROGRAM = """
import mmes, numpy as np
mmes.minimize(lambda x: float(x @ x), np.ones(5), 1.0, seed=1, max_evaluations=900, progress=True)
"""


def progress(**changes):
    # The last three are for callbacks.
    now = Progress(2500, 100, 1.25, 0.5, 0, 2.0, "cma-es", 10_000, None, *[lambda: None] * 3)
    return replace(now, **changes)


def test_the_line_shows_what_matters():
    display = Display()
    assert display.line(progress()) == (
        "2,500 of 10,000 (25%) evaluations  best 1.25  sigma 0.5  1,250/s  at most 6.0 s left"
    )
    limited = display.line(progress(max_evaluations=None, start=2, time_limit=5.0))
    assert "at most 3.0 s left" in limited
    assert "start 3" in limited


def test_plain_lines_come_every_five_seconds_and_at_the_end(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for last_line in (True, False):
        display = Display(last_line)
        for _ in range(124):
            now[0] += 0.1
            display(progress())
        display(progress(final=True, reason=mmes.StopReason.TIME_LIMIT))
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 3 + last_line
        assert lines[0] == "strategy: cma-es"
        assert ("The time limit was reached." in lines[-1]) == last_line


def test_minimize_shows_its_progress(capsys):
    mmes.minimize(lambda x: float(x @ x), np.ones(5), 1.0, max_evaluations=99, progress=True)
    choice, line = capsys.readouterr().err.splitlines()
    assert choice == "strategy: active-cma (auto: n = 5 is at most 100)"
    assert line.startswith("99 of 99 (100%) evaluations  best ")
    assert line.endswith("The maximum number of evaluations was reached.")
    with pytest.raises(TypeError, match="progress must be True or False, not 1"):
        mmes.minimize(lambda x: float(x @ x), np.ones(5), 1.0, progress=1)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
@pytest.mark.parametrize("rich", [True, False])
def test_on_a_terminal_rich_draws_where_it_is_installed(rich):
    if rich:
        pytest.importorskip("rich")
    hide = "" if rich else "import sys; sys.modules['rich'] = None\n"
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", hide + PROGRAM], stderr=theirs, env=os.environ | {"TERM": "xterm"}
    )
    os.close(theirs)
    seen = all_of(ours)
    assert process.wait(timeout=60) == 0
    assert b"900 of 900 (100%) evaluations" in seen
    assert (b"\x1b[" in seen) == rich


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.44, "0.4 s"),
        (99, "99.0 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (273_600, "76 h 0 min"),
        (400_000, "4 d 15 h"),
        (float("inf"), "?"),
    ],
)
def test_durations_as_people_say_them(seconds, text):
    assert duration(seconds) == text
