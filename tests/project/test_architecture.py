"""docs/architecture.md is what a real run does: its files, in the order of the calls."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import mmes
from paths import ROOT

SOURCE = Path(mmes.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
# The path of one ask and one tell that a reader must follow.
MOST_FILES = 9
# From the loop to what is saved, and to the file.
MOST_FILES_TO_SAVE = 4
SAVING_ENDS_AT = {
    "gather": ("strategies/parts/record.py", "arrays_of"),
    "write": ("checkpoint/format.py", "write"),
}


def listed(title: str) -> list[str]:
    """Return the files in the first table under a title of the page."""
    _, _, rest = PAGE.partition(f"# {title}\n")
    table = rest.partition("\n#")[0]
    return re.findall(r"^\| `([\w/]+\.py)` \|", table, re.MULTILINE)


def file_of(frame: FrameType) -> str | None:
    """Return the file of a frame if it is one of mmes."""
    path = Path(frame.f_code.co_filename)
    return path.relative_to(SOURCE).as_posix() if path.is_relative_to(SOURCE) else None


def files_on_the_stack(frame: FrameType | None) -> list[str]:
    """Return the files of mmes that a call passed through, the outermost first."""
    found: list[str] = []
    while frame is not None:
        file = file_of(frame)
        if file is not None:
            found.append(file)
        frame = frame.f_back
    return list(dict.fromkeys(found[::-1]))


class Generation:
    """Follows one generation of a run: from one `ask` to the next."""

    def __init__(self, number: int):
        self.number, self.asked, self.protocols_asked = number, 0, 0
        self.entered: set[str] = set()
        self.stacks: dict[str, list[str]] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Look at one event of `sys.setprofile`."""
        file = file_of(frame)
        name = frame.f_code.co_name
        asks = (
            event == "call"
            and name == "__instancecheck__"
            and "typing" in frame.f_globals["__name__"]
        )
        self.protocols_asked += asks and self.asked == self.number
        if event != "call" or file is None:
            return
        # N.B. counted where the loop's call arrives, so that a base class may hold `ask`.
        self.asked += name == "ask" and file.startswith("strategies/shell/")
        if self.asked != self.number:
            return
        self.entered.add(file)
        if file == "kernels/native.py" and name in ("sample", "recombine"):
            self.stacks[name] = files_on_the_stack(frame)

    def objective(self, x: np.ndarray) -> float:
        """Return a value, and see from where it was asked for."""
        if self.asked == self.number:
            self.stacks["objective"] = files_on_the_stack(sys._getframe())
        return float(x @ x)


@pytest.fixture(scope="module")
def followed() -> Generation:
    generation = Generation(5)
    outer = sys.getprofile()
    sys.setprofile(generation)
    try:
        mmes.minimize(
            generation.objective,
            np.ones(20),
            0.5,
            strategy="mmes",
            kernel="native",
            seed=1,
            max_generations=8,
        )
    finally:
        sys.setprofile(outer)
    return generation


@pytest.mark.parametrize(
    ("title", "call"), [("ask", "sample"), ("evaluate", "objective"), ("tell", "recombine")]
)
def test_the_page_names_the_files_of_each_call_in_order(
    followed: Generation, title: str, call: str
) -> None:
    assert listed(title) == followed.stacks[call]


def test_the_page_names_every_file_that_a_generation_enters(followed: Generation) -> None:
    walk = {*listed("ask"), *listed("evaluate"), *listed("tell")}
    helpers = listed("Called on the way")
    assert len(helpers) == len(set(helpers))
    assert set(helpers) == followed.entered - walk
    assert walk - followed.entered == {"minimize.py"}  # entered once, before the generation


def test_no_generation_asks_what_an_object_can_do(followed: Generation) -> None:
    """`isinstance` with a protocol takes 10 us in Python 3.11: it is asked once, at the start."""
    assert followed.protocols_asked == 0


def test_one_ask_and_one_tell_pass_through_few_files() -> None:
    assert 5 < len({*listed("ask"), *listed("tell")}) <= MOST_FILES


class Saving:
    """Follows the first checkpoint of a run: what it is made of, and how it gets to the disk."""

    def __init__(self) -> None:
        self.stacks: dict[str, list[str]] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Look at one event of `sys.setprofile`."""
        if event == "call":
            for part, end in SAVING_ENDS_AT.items():
                if end == (file_of(frame), frame.f_code.co_name) and part not in self.stacks:
                    files = files_on_the_stack(frame)
                    self.stacks[part] = files[files.index("run/loop.py") :]


def test_the_page_names_the_files_that_a_checkpoint_passes_through(tmp_path: Path) -> None:
    saving, outer = Saving(), sys.getprofile()
    sys.setprofile(saving)
    try:
        mmes.minimize(
            lambda x: float(x @ x),
            np.ones(20),
            0.5,
            strategy="mmes",
            seed=1,
            max_generations=3,
            checkpoint=tmp_path / "run.mmes",
            checkpoint_generations=1,
        )
    finally:
        sys.setprofile(outer)
    for part in SAVING_ENDS_AT:
        assert listed(part) == saving.stacks[part]
        assert len(listed(part)) <= MOST_FILES_TO_SAVE


def test_the_picture_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "architecture.py"), "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_box_of_the_picture_hides_another() -> None:
    """Failed before: the loop was below its evaluation."""
    drawn = (ROOT / "docs" / "figures" / "architecture.svg").read_text()
    side = r'{}="([\d.]+)"'
    corner = " ".join(side.format(name) for name in ("x", "y", "width", "height"))
    found = re.findall(rf'<rect class="box[ \w]*" rx="4" {corner}/>', drawn)
    boxes = np.array(found, dtype=float)
    assert len(boxes) > 10
    low, high = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    meet = ((low[:, None] < high[None]) & (low[None] < high[:, None])).all(axis=2)
    assert meet.sum() == len(boxes)
