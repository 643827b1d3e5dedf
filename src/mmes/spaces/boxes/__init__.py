"""Treatments of bounds: maps from points of the search to points of the box, one file each.

`BOXES` names them; to add one, write its file and its line here.
"""

from mmes.spaces.boxes.box import Box, BoxCode, Start
from mmes.spaces.boxes.clip import Clip
from mmes.spaces.boxes.reflect import Reflect
from mmes.spaces.boxes.rounded import Rounded
from mmes.spaces.boxes.smooth import Smooth

BOXES: dict[str, type[Box]] = {box.name: box for box in (Smooth, Clip, Reflect)}

__all__ = [
    "BOXES",
    "Box",
    "BoxCode",
    "Clip",
    "Reflect",
    "Rounded",
    "Smooth",
    "Start",
]
