"""Load code by name: ``file.py:name``, ``package.module:name``, or an entry point of a package."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmes.base.options import suggestion

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def is_location(name: str) -> bool:
    """Return whether a name is the location of user code and not the name of something built in."""
    return ":" in name


def late_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose names are imported when they are used.

    `modules` has the module of each name, within the package; a module itself has none.
    """

    def found(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = modules[name]
        if not module:
            return import_module(f"{package}.{name}")
        return getattr(import_module(f"{package}.{module}"), name)

    return found


def load_objective(location: str) -> Callable[[Any], Any]:
    """Return the function that ``file.py:name`` or ``package.module:name`` names.

    A file is imported as Python runs a script: under its name, with its folder in ``sys.path``. So
    it can import modules in the same folder, and worker processes can import it.

    Raises ValueError if there is no such file, module or function, or if importing it failed.
    """
    make_importable(location)
    found = load_object(location, "function")
    if not callable(found):
        raise ValueError(f"{location} is not a function but {found!r}")
    return found


def load_object(location: str, kind: str) -> Any:
    """Return what is at a location; `kind` is the word for it in messages.

    ``sys.path`` is restored afterwards; see `make_importable`.
    """
    before = list(sys.path)
    try:
        return _loaded(location, kind)
    finally:
        sys.path[:] = before


def make_importable(location: str) -> None:
    """Add the folders of a location to ``sys.path`` permanently, as Python does for a script.

    For the command line: worker processes and replicas import the code there by name.
    """
    place = location.rpartition(":")[0]
    if place.endswith(".py"):
        _put_into_path(str(Path(place).resolve().parent))
    _put_into_path(os.getcwd())


def _loaded(location: str, kind: str) -> Any:
    place, _, name = location.rpartition(":")
    if not place or not name:
        raise ValueError(
            f"name your own {kind} as file.py:name or package.module:name, not {location!r}"
        )
    module = _from_file(Path(place)) if place.endswith(".py") else _from_name(place)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = [word for word in vars(module) if not word.startswith("_")]
            raise ValueError(f"there is no {kind} {name!r} in {place}{suggestion(name, known)}")
        found = getattr(found, part)
    return found


def _from_file(path: Path) -> Any:
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    file = path.resolve()  # now: the module may change the folder
    _put_into_path(str(file.parent))
    module = _from_name(path.stem)
    if Path(getattr(module, "__file__", None) or "").resolve() != file:
        raise ValueError(
            f"{path} cannot be imported, because {path.stem!r} is also the name of another module; "
            "rename the file"
        )
    return module


def _from_name(name: str) -> Any:
    _put_into_path(os.getcwd())  # not "", which would be another folder in a worker
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.split(".")[0] == error.name.split(".")[0]:
            raise ValueError(f"there is no module {name!r}") from error
        raise ValueError(f"{name} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:  # whatever the user's module does when imported
        raise ValueError(f"{name} cannot be imported: {type(error).__name__}: {error}") from error


def _put_into_path(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def entry_points(group: str) -> dict[str, EntryPoint]:
    """Return what installed packages have registered in a group, by name; nothing is imported."""
    from importlib import metadata  # here: few runs need it, and it takes a tenth of `import mmes`

    return {entry.name: entry for entry in metadata.entry_points(group=group)}
