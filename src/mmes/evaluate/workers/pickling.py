"""Turning an objective into bytes for a worker, or naming the part that cannot go."""

from __future__ import annotations

import contextlib
import functools
import inspect
import pickle
import sys
from collections.abc import Collection, Iterator
from typing import Any

from mmes.evaluate.remote import Task

try:
    import cloudpickle  # type: ignore[import-not-found]
except ImportError:
    cloudpickle = None


def pickled(task: Task) -> bytes:
    """Return the task as bytes that ``pickle.loads`` understands.

    With cloudpickle installed, lambdas and functions defined anywhere can go; without, only what
    can be imported. A TypeError names the part that cannot be sent, and says what to do.
    """
    dumps = pickle.dumps if cloudpickle is None else cloudpickle.dumps
    try:
        return dumps(task)
    except Exception as error:  # pickling calls the user's code
        part, reason = _culprit(task.objective, "the objective", dumps) or ("it", error)
        if cloudpickle is None and "<l" in f"{reason}{task.objective!r}":  # a lambda or local
            advice = "pip install cloudpickle, or define it at the top of a module"
        else:
            advice = (
                "create that part inside the function, or leave it out in __getstate__, "
                "or run without workers"
            )
        raise TypeError(
            f"the objective cannot be sent to worker processes, because {part} cannot be pickled "
            f"({reason}); {advice}"
        ) from error


def pickled_ticket(ticket: Any) -> bytes:
    """Return a batch of data, or its number, as bytes for the workers.

    Raises TypeError if it cannot be pickled.
    """
    try:
        return pickle.dumps(ticket)
    except Exception as error:
        raise TypeError(
            f"a batch of type {type(ticket).__name__} cannot be sent to worker processes "
            f"({error}); give batches as a function of the generation's number, which each worker "
            "calls itself"
        ) from error


def pickled_classes(*kinds: type) -> bytes:
    """Return classes as bytes: by name where they can be imported, else by value.

    Raises TypeError if neither can be done.
    """
    dumps = pickle.dumps if cloudpickle is None else cloudpickle.dumps
    try:
        with _by_value({kind.__module__ for kind in kinds}):
            return dumps(kinds)
    except Exception as error:
        raise TypeError(
            f"{', '.join(kind.__name__ for kind in kinds)} cannot be sent to another process "
            f"({error}); define it at the top of a module"
        ) from error


@contextlib.contextmanager
def _by_value(names: Collection[str]) -> Iterator[None]:
    """Let classes travel by value whose module another process would not find.

    That is so for a strategy that was named as ``file.py:Class``: its folder is in the path only
    while it is loaded.
    """
    if cloudpickle is None:
        yield
        return
    hidden = [name for name in names if not _can_be_found(name)]
    for name in hidden:
        cloudpickle.register_pickle_by_value(sys.modules[name])
    try:
        yield
    finally:
        for name in hidden:
            cloudpickle.unregister_pickle_by_value(sys.modules[name])


def _can_be_found(name: str) -> bool:
    top = name.partition(".")[0]
    if name not in sys.modules or top == "__main__":
        return True
    # Not importlib.util.find_spec, which believes what was imported before.
    return any(finder.find_spec(top, None) is not None for finder in sys.meta_path)


def _culprit(thing: Any, name: str, dumps: Any, depth: int = 0) -> tuple[str, Exception] | None:
    """Return the name of the innermost part that cannot be pickled, and why."""
    try:
        dumps(thing)
        return None
    except Exception as error:
        if depth < 6:
            for part_name, part in _parts(thing, name):
                found = _culprit(part, part_name, dumps, depth + 1)
                if found is not None:
                    return found
        return f"{name} ({_in_text(thing)})", error


def _parts(thing: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, functools.partial):
        yield f"{name}.func", thing.func
        yield from _parts(list(thing.args), f"{name}.args")
        yield from _parts(thing.keywords, f"{name}.keywords")
    elif isinstance(thing, dict):
        for key, item in list(thing.items())[:100]:
            yield f"{name}[{key!r}]", item
    elif isinstance(thing, list | tuple):
        for place, item in enumerate(thing[:100]):
            yield f"{name}[{place}]", item
    elif inspect.isfunction(thing):
        variables = inspect.getclosurevars(thing)
        for variable, value in variables.nonlocals.items():
            yield f"its variable {variable!r}", value
        for variable, value in variables.globals.items():
            yield f"the global variable {variable!r}", value
    elif inspect.ismethod(thing):
        yield f"{name}.__self__", thing.__self__
    elif hasattr(thing, "__dict__") and not isinstance(thing, type):
        for attribute, item in vars(thing).items():
            yield f"{name}.{attribute}", item


def _in_text(thing: Any) -> str:
    text = repr(thing)
    return text if len(text) <= 80 else f"{text[:77]}..."
