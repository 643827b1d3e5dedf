"""What a checkpoint of a run holds, when it is written, and what happens if it cannot be."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mmes.base.saved_numbers import checked_scalar, checked_value
from mmes.base.tensors import to_numpy
from mmes.errors import CheckpointError, CheckpointExists, CheckpointWarning, warn_user
from mmes.run.noise import MeanAverage, NoiseWatch, Verdict
from mmes.run.observing.history import History
from mmes.run.reevaluation import Reevaluation
from mmes.run.resuming import understood
from mmes.run.settings import RunSettings
from mmes.run.state import NOTHING, Code, RunState, Spent, averages

# Writing takes at most about this share of a run's time, however large the state is.
_WRITING_SHARE = 0.1


def saved_state(
    state: RunState, settings: RunSettings, now: Spent, copy: bool = True
) -> dict[str, Any]:
    """Return the state after the last completed generation: JSON-able entries and "arrays".

    The settings are saved too. `now` are the seconds and the repeated evaluations of this process.
    Without `copy` the arrays change as the run continues.
    """
    search = state.es.state(copy)
    arrays = {f"search/{name}": array for name, array in search.pop("arrays").items()}
    own = settings.space.arrays() | (
        {} if state.best is None else {"best_x": to_numpy(state.best[1])}
    )
    if state.average.point is not None:
        own["average"] = to_numpy(state.average.point)
    arrays |= {name: array.copy() if copy else array for name, array in own.items()}
    arrays["history"] = state.history.table()
    arrays |= {f"noise/{name}": array for name, array in state.noise.arrays().items()}
    if state.again is not None:
        arrays |= {f"again/{name}": array for name, array in state.again.arrays().items()}
    handled = state.constraints
    if handled is not None:
        own = {f"constraints/{name}": array for name, array in handled.arrays().items()}
        arrays |= {name: array.copy() if copy else array for name, array in own.items()}
    judge = state.validation
    if judge is not None:
        arrays |= {f"validation/{name}": array for name, array in judge.arrays().items()}
    return settings.entries() | {
        "constraints": None if handled is None else handled.entries(),
        "level": state.level,
        "validation": None if judge is None else judge.entries(),
        "dimension": state.es.dimension,
        "start": state.start,
        "growth": state.growth,
        "first_population_size": state.first_population_size,
        "best_value": None if state.best is None else state.best[0],
        "spent": asdict(state.spent + now),
        "evaluations": state.evaluations - state.partial.evaluations,
        "noise": state.noise.entries(),
        "question": state.question.value,
        "unfinished": state.unfinished,
        "averaged": state.average.count,
        "generations": state.generations,
        "warned": state.warned,
        "history": state.history.scalars(),
        "notes": dict(state.notes),
        "search": search,
        "arrays": arrays,
    }


def restored_state(settings: RunSettings, saved: dict[str, Any], code: Code = NOTHING) -> RunState:
    """Return the saved state; `code` is what a file cannot contain.

    Raises CheckpointError if the run had constraints and none are given, or the other way round, or
    batches, or validation; CheckpointCorrupt if its parts do not fit together.
    """
    given = {"constraints": code.constraints is not None, "batches": code.batches}
    given["validation"] = code.validation is not None
    for name, entry in (("constraints",) * 2, ("batches", "level"), ("validation",) * 2):
        had = saved.get(entry) is not None
        if had != given[name]:
            raise CheckpointError(
                f"the checkpoint belongs to another run: it had {'' if had else 'no '}{name}; "
                f"give {name}= as then"
            )
    with understood():
        return _restored(settings, saved, code)


def _restored(settings: RunSettings, saved: dict[str, Any], code: Code) -> RunState:
    arrays, x0 = saved["arrays"], settings.space.x0
    if x0 is not None and x0.size != arrays["search/best_x"].size:
        raise ValueError(f"x0 has {x0.size} entries")
    best = None
    if saved["best_value"] is not None:
        value = checked_value("best_value", saved["best_value"])
        best = value, np.array(arrays["best_x"], np.float64)
        if best[1].size != arrays["search/best_x"].size or not np.isfinite(best[1]).all():
            raise ValueError("best_x must be a point: finite, with one entry per variable")

    def below(folder: str) -> dict[str, Any]:
        return {n.removeprefix(folder): a for n, a in arrays.items() if n.startswith(folder)}

    again = {name: np.array(a, np.float64).ravel() for name, a in below("again/").items()}
    places = ("kernel", "threads", "device")
    where = {name: value for name, value in settings.options.items() if name in places}
    search = saved["search"] | {"arrays": below("search/")}
    if "rows_at_once" in settings.options:
        here = {"rows_at_once": settings.options["rows_at_once"]}
        search["options"] = search["options"] | here
    es = settings.strategy.from_state(search, **where)
    handling = settings.handling(code.constraints, es.dimension)
    if handling is not None:
        handling.restore(saved["constraints"], below("constraints/"), es.kernel)
    if code.validation is not None:
        code.validation.restore(saved["validation"], below("validation/"), es)
    average = MeanAverage(averages(settings, code))
    if "average" in arrays:  # older checkpoints have none
        point = np.array(arrays["average"], np.float64)
        if point.shape != (es.dimension,) or not np.isfinite(point).all():
            raise ValueError("average must be a point: finite, with one entry per variable")
        average.point = es.kernel.from_host(point)
        average.count = checked_scalar("averaged", saved["averaged"], 0, low=1)
    made = RunState(
        es=es,
        first_population_size=checked_scalar("size", saved["first_population_size"], 0),
        start=checked_scalar("start", saved["start"], 0),
        growth=checked_scalar("growth", saved["growth"], 0),
        spent=Spent(
            **{
                name: checked_scalar(name, saved["spent"].get(name, fresh), fresh, low=0)
                for name, fresh in asdict(Spent()).items()
            }
        ),
        best=best and (best[0], es.kernel.from_host(best[1])),
        unfinished=checked_scalar("unfinished", saved.get("unfinished", 0), 0),
        history=History.restored(saved["history"], np.array(arrays["history"]), code.columns),
        noise=NoiseWatch.restored(saved["noise"], below("noise/"))
        if "noise" in saved
        else NoiseWatch(),
        # Older checkpoints do not have it.
        question=Verdict(saved.get("question", "")),
        average=average,
        again=Reevaluation(**again) if again else None,
        warned=saved["warned"] is True,
        notes=dict(saved["notes"]),
        constraints=handling,
        level=checked_value("level", saved["level"]) if code.batches else None,
        validation=code.validation,
    )
    if saved.get("evaluations", made.evaluations) != made.evaluations:
        raise ValueError(
            f"evaluations are {saved['evaluations']!r}, but those of the parts add up to "
            f"{made.evaluations}"
        )
    return made


class Saver:
    """Writes the state of a run to its checkpoint when it is time; without a path, never.

    If it cannot be written, there is one warning and the run continues, or, with the option
    `checkpoint_strict`, an error.
    """

    def __init__(self, path: str | os.PathLike[str] | None, limits: Mapping[str, Any]):
        self.path = None if path is None else _checked_path(path)
        self._seconds = limits["checkpoint_seconds"]
        self._generations = limits["checkpoint_generations"]
        self._strict = limits["checkpoint_strict"]
        self._warned = False
        self._generation = 0
        self._wrote_at = time.monotonic()
        self._wait = self._seconds

    def read(self) -> dict[str, Any] | None:
        """Return the state in the existing checkpoint, if there is one."""
        if self.path is None:
            return None
        from mmes import checkpoint  # here: few runs need it, and zipfile is slow to import

        if not checkpoint.exists(self.path):
            return None
        entries, arrays = checkpoint.read(self.path)
        return entries | {"arrays": arrays}

    def refuse_existing(self, over: str | os.PathLike[str] | None = None) -> None:
        """Raise CheckpointExists if there is a checkpoint, unless it is the one `over`."""
        if self.path is None:
            return
        from mmes import checkpoint

        if not checkpoint.exists(self.path):
            return
        if over is None or self.path != Path(over).absolute():
            raise CheckpointExists(
                f"the checkpoint {self.path} already exists: resume it with mmes.resume or "
                "resume='auto', choose another name, or delete it"
            )

    def begin(self, generation: int) -> None:
        """Start the interval here."""
        self._generation = generation
        self._wrote_at = time.monotonic()

    def save_if_due(self, generation: int, state: Callable[[], dict[str, Any]]) -> None:
        """Write the state if the interval is over."""
        if self.path is None:
            return
        if self._generations is not None:
            due = generation - self._generation >= self._generations
        else:
            due = time.monotonic() - self._wrote_at >= self._wait
        if due:
            self.save(generation, state)

    def save(self, generation: int, state: Callable[[], dict[str, Any]]) -> bool:
        """Write the state now; return whether it is on disk."""
        if self.path is None:
            return False
        from mmes import checkpoint

        began = time.monotonic()
        try:
            entries = state()
            checkpoint.write(self.path, entries, entries.pop("arrays"))
        except (OSError, CheckpointError) as error:
            if self._strict:
                raise CheckpointError(
                    f"the checkpoint {self.path} cannot be written: {error}"
                ) from error
            if not self._warned:
                self._warned = True
                warn_user(
                    f"the checkpoint {self.path} cannot be written ({error}); the run continues "
                    "and tries again at every interval. This warning is issued once per run",
                    CheckpointWarning,
                )
            written = False
        else:
            written = True
        self._generation = generation
        self._wrote_at = time.monotonic()
        self._wait = max(self._seconds, (self._wrote_at - began) / _WRITING_SHARE)
        return written


def _checked_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"checkpoint must be the path of a file, not {path!r} (a {type(path).__name__})"
        )
    found = Path(path)
    if found.is_dir():
        raise IsADirectoryError(f"checkpoint must be the path of a file, but {found} is a folder")
    if not found.parent.is_dir():
        raise FileNotFoundError(
            f"the folder of the checkpoint, {found.parent}, does not exist; create it first"
        )
    if not os.access(found.parent, os.W_OK):
        raise PermissionError(f"the folder of the checkpoint, {found.parent}, is not writable")
    return found.absolute()  # a later change of folder must not move it


def checked_notes(notes: Any) -> dict[str, Any]:
    """Return a copy of the notes as a checkpoint stores them.

    Raises TypeError if they are not a dict, or JSON cannot represent them.
    """
    if not isinstance(notes, dict):
        raise TypeError(f"notes must be a dict, not {notes!r} (a {type(notes).__name__})")
    from mmes.checkpoint import as_stored

    try:
        return as_stored(notes)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"notes must be strings, numbers, lists and dicts that JSON can represent ({error})"
        ) from error
