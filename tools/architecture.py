"""Draw docs/figures/architecture.svg: python tools/architecture.py [--check].

The layers are those of import-linter (pyproject.toml), the files those of docs/architecture.md.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "mmes"
PICTURE = ROOT / "docs" / "figures" / "architecture.svg"
CALLS = {"ask": "points", "evaluate": "values", "tell": "new state"}
"""The calls of one generation, and what each of them gives back to the loop."""
END = {"ask": "C++: native/", "evaluate": "your objective", "tell": "C++: native/"}
"""Where each of them leaves Python, or the library."""

WIDTH, LEFT, COLUMN, GAP = 1000, 170, 250, 20
BOX, ROW, PAD = 26, 40, 8
STYLE = """
  text { font: 13px "DejaVu Sans", Verdana, sans-serif; fill: #222 }
  .file { font-family: "DejaVu Sans Mono", Menlo, monospace; font-size: 12px }
  .note { font-size: 12px; font-style: italic; fill: #555 }
  .band { fill: #f4f5f7 } .band.used { fill: #e3edf8 }
  .box { fill: #fff; stroke: #34699a; stroke-width: 1.2 } .outside { stroke-dasharray: 4 3 }
  .call { fill: none; stroke: #34699a; stroke-width: 1.6; marker-end: url(#head) }
  .back { fill: none; stroke: #c0632b; stroke-width: 1.4; stroke-dasharray: 5 3 }
  .back { marker-end: url(#up) }
"""
HEAD = (
    '<marker id="{}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0 8 4 0 8z" fill="{}"/></marker>'
)


class Box(NamedTuple):
    """A box of the picture: the middle of its top edge, and its width."""

    x: float
    y: float
    width: float
    text: str
    kind: str = "box"


def layers() -> list[list[str]]:
    """Return the layers from top to bottom, each as the names of its packages and modules."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    whole = next(c for c in contracts["contracts"] if c["containers"] == ["mmes"])
    return [re.findall(r"\w+", layer) for layer in whole["layers"]]


def walk(call: str) -> list[str]:
    """Return the files of one call, as the page lists them."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    section = page.partition(f"### {call}\n")[2].partition("\n#")[0]
    return re.findall(r"^\| `([\w/]+\.py)` \|", section, re.MULTILINE)


def layer_of(file: str) -> str:
    """Return the name of the package or module of a file."""
    return file.removesuffix(".py").partition("/")[0]


def within(file: str) -> str:
    """Return the path of a file within its layer."""
    return file.removeprefix(f"{layer_of(file)}/")


def shown_name(name: str) -> str:
    """Return a package as `name/` and a module as `name.py`."""
    return f"{name}/" if (SOURCE / name).is_dir() else f"{name}.py"


def drawn_box(box: Box) -> str:
    """Return the SVG of a box with its text."""
    corner = f'x="{box.x - box.width / 2:g}" y="{box.y:g}" width="{box.width:g}" height="{BOX}"'
    return (
        f'<rect class="{box.kind}" rx="4" {corner}/>'
        f'<text class="file" text-anchor="middle" x="{box.x:g}" y="{box.y + 17:g}">'
        f"{box.text}</text>"
    )


def picture() -> str:
    """Return the picture."""
    walks = {call: walk(call) for call in CALLS}
    shared = [file for file in walks["ask"] if all(file in files for files in walks.values())]
    middle = {call: LEFT + COLUMN / 2 + k * (COLUMN + GAP) for k, call in enumerate(CALLS)}
    bands, boxes, arrows = [], [], []
    previous: dict[str, Box] = {}
    loop: Box | None = None
    y = PAD
    for names in layers():
        here = {c: [f for f in files if layer_of(f) in names] for c, files in walks.items()}
        outside = {call: [END[call]] if "kernels" in names else [] for call in CALLS}
        rows = max(len(here[c]) + len(outside[c]) for c in CALLS)
        height = max(ROW * rows - (ROW - BOX), 18 if not rows else BOX) + 2 * PAD
        used = " used" if any(here.values()) else ""
        bands.append(
            f'<rect class="band{used}" x="{PAD}" y="{y}" width="{WIDTH - 2 * PAD}" '
            f'height="{height}"/>'
            f'<text x="{2 * PAD}" y="{y + height / 2 + 5:g}">'
            f"{', '.join(map(shown_name, names))}</text>"
        )
        for file in (by_all := [f for f in shared if layer_of(f) in names]):
            total = 3 * COLUMN + 2 * GAP
            box = Box(LEFT + total / 2, y + PAD, total, within(file))
            boxes.append(box)
            if loop is not None:
                arrows.append(("call", f"M{loop.x:g} {loop.y + BOX:g}V{box.y:g}"))
            loop = box
        for call in CALLS:
            files = [file for file in here[call] if file not in shared]
            own = [Box(middle[call], 0, COLUMN - 60, within(file)) for file in files]
            own += [Box(middle[call], 0, 130, text, "box outside") for text in outside[call]]
            for row, box in enumerate(own, start=len(by_all)):
                placed = box._replace(y=y + PAD + ROW * row)
                above = previous.get(call, loop)
                if above is not None:
                    arrows.append(("call", f"M{placed.x:g} {above.y + BOX:g}V{placed.y:g}"))
                boxes.append(placed)
                previous[call] = placed
        y += height + 4
    assert loop is not None
    notes = []
    for call, given in CALLS.items():
        last, side = previous[call], middle[call] + COLUMN / 2 - 4
        start, low, high = last.x + last.width / 2, last.y + BOX / 2, loop.y + BOX
        arrows.append(("back", f"M{start:g} {low:g}H{side:g}V{high:g}"))
        notes += [(middle[call] - 8, high + 11, call), (side - 8, high + 11, given)]
    lines = [f'<path class="{kind}" d="{path}"/>' for kind, path in arrows]
    words = [
        f'<text class="note" text-anchor="end" x="{x:g}" y="{low:g}">{text}</text>'
        for x, low, text in notes
    ]
    size = f'viewBox="0 0 {WIDTH} {y + PAD}" width="{WIDTH}" height="{y + PAD}"'
    heads = HEAD.format("head", "#34699a") + HEAD.format("up", "#c0632b")
    body = [f"<style>{STYLE}</style><defs>{heads}</defs>", *bands, *lines]
    body += [*map(drawn_box, boxes), *words]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def main() -> int:
    """Write the picture, or check that it is up to date."""
    drawn = picture()
    if "--check" not in sys.argv[1:]:
        PICTURE.write_text(drawn)
    elif not PICTURE.exists() or PICTURE.read_text() != drawn:
        print(f"{PICTURE.name} is out of date: python tools/architecture.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
