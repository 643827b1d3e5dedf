"""An Optuna sampler that uses the strategies of this library.

>>> import optuna
>>> from optuna.distributions import FloatDistribution
>>> from mmes.integrations.optuna import MMESSampler
>>> optuna.logging.set_verbosity(optuna.logging.WARNING)
>>> sampler = MMESSampler({f"x{i}": FloatDistribution(-5, 5) for i in range(20)}, seed=1)
>>> study = optuna.create_study(sampler=sampler)
>>> study.optimize(lambda trial: float(sum(sampler.vector(trial) ** 2)), n_trials=200)
>>> study.best_value < 20
True
>>> x = sampler.vector(study.best_trial, study)
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.extras import missing
from mmes.base.randomness import fresh_seed
from mmes.integrations.own_options import refuse_own_options
from mmes.spaces.start import SIGMA_SHARE_OF_BOX
from mmes.strategies import Optimizer, automatic, get_strategy, is_auto

try:
    from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.study import Study, StudyDirection
    from optuna.trial import FrozenTrial, Trial, TrialState
except ImportError as error:
    raise missing("optuna", "optuna") from error

__all__ = ["MMESSampler"]

_PLACE = "mmes:place"  # of a trial: [generation, row]
_SETTING = "mmes:sampler"  # of a study: what every sampler of it must agree on
_OWN_OPTIONS = {
    "bounds": "the ranges of search_space are the bounds",
    "manifold": "it searches the ranges of search_space",
}


class MMESSampler(BaseSampler):
    """Samples trials by an evolution strategy and stores only (generation, row) with each.

    The strategy is rebuilt from the values of finished trials. So a study can be resumed exactly,
    any number of trials can be asked at a time, and workers in several threads or processes share
    one search. Failed and pruned trials rank last.

    Parameters
    ----------
    search_space : mapping of str to distribution
        Float and integer distributions, including log-scaled ones and those with steps.
    seed : int, optional
        The seed; by default a new one, which is stored in the study. Several processes that start a
        study at the same time need the same one.
    x0 : mapping of str to float, optional
        Start values; by default the middle of each range. The sampler does not suggest the start
        values themselves: use `study.enqueue_trial` for this.
    sigma0 : float
        Initial mutation strength, as a fraction of the ranges.
    strategy : str or class
        The strategy; see `mmes.strategies`. "auto" chooses by the number of parameters, like
        `mmes.minimize`.
    independent_sampler : BaseSampler, optional
        Samples parameters that are not in the search space; by default at random.
    **options
        Options of the strategy, for example `population_size`.

    Notes
    -----
    If all candidates of a generation are being evaluated and another trial is requested, the
    candidate that has been running longest is repeated, and its first value counts. So a worker
    that died does not block the others.

    Workers on different kinds of processors need a strategy that gives the same bits on all of
    them, such as "mmes" or "adaptive"; CMA-ES uses the LAPACK of the machine.
    """

    def __init__(
        self,
        search_space: Mapping[str, BaseDistribution] | None = None,
        *,
        seed: int | None = None,
        x0: Mapping[str, float] | None = None,
        sigma0: float = SIGMA_SHARE_OF_BOX,
        strategy: str | type[Optimizer] = "auto",
        independent_sampler: BaseSampler | None = None,
        **options: Any,
    ):
        refuse_own_options(options, "MMESSampler", _OWN_OPTIONS)
        if not isinstance(search_space, Mapping):
            raise TypeError(
                "MMESSampler needs search_space, a mapping of names to distributions, as in "
                f"MMESSampler({{'x': FloatDistribution(-5, 5)}}), not {search_space!r}"
            )
        self._axes = {name: _axis(name, kind) for name, kind in search_space.items()}
        self._searched = [name for name, axis in self._axes.items() if not axis.kind.single()]
        if not self._searched:
            raise ValueError("search_space has no parameter that can vary")
        unknown = set(x0 or ()) - set(self._axes)
        if unknown:
            raise ValueError(f"x0 names parameters that are not in search_space: {sorted(unknown)}")
        self._seed = seed
        self._strategy = (
            automatic(len(self._searched))[0] if is_auto(strategy) else get_strategy(strategy)
        )
        self._start = np.array(
            [self._axes[name].unit((x0 or {}).get(name)) for name in self._searched]
        )
        self._sigma0 = sigma0
        self._options = options
        self._independent = independent_sampler or RandomSampler(seed)
        self._made(seed or 0)  # a mistake in the options shows now
        self._paths: dict[str, _Path] = {}
        self._lock = threading.Lock()

    def vector(self, trial: Trial | FrozenTrial, study: Study | None = None) -> NDArray[np.float64]:
        """Return the values of all parameters of a trial, without registering them in the storage.

        Parameters
        ----------
        trial : Trial or FrozenTrial
            The trial in the objective; or one of the study's trials, such as ``study.best_trial``.
        study : Study, optional
            The study; needed for a frozen trial.

        Returns
        -------
        ndarray
            One value per parameter, in the order of the search space.
        """
        study = study or getattr(trial, "study", None)
        if study is None:
            raise ValueError("vector(trial, study): a frozen trial needs its study")
        with self._lock:
            record = (
                study._storage.get_trial(trial._trial_id) if isinstance(trial, Trial) else trial
            )
            path = self._path(study)
            place = record.system_attrs.get(_PLACE)
            if record.state.is_finished() or (place and place[0] < path.es.generation):
                point = self._replayed(study, record)
            else:
                point = path.point_for(study, record)
        values = self._named(point)
        return np.array([values[name] for name in self._axes])

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the search space."""
        return {name: self._axes[name].kind for name in self._searched}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the values of a candidate that is not being evaluated yet."""
        with self._lock:
            point = self._path(study).point_for(study, trial)
        return {name: value for name, value in self._named(point).items() if name in search_space}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the value of a parameter that is not in the search space."""
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        """Do nothing, because all workers share one search."""
        self._independent.reseed_rng()

    def __getstate__(self) -> dict[str, Any]:
        # The search is rebuilt from the study.
        return {
            name: value for name, value in vars(self).items() if name not in ("_lock", "_paths")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock(), _paths={})  # pyright: ignore[reportAttributeAccessIssue]

    def _made(self, seed: int) -> Optimizer:
        options: dict[str, Any] = self._options | {"seed": seed}
        return self._strategy(self._start, self._sigma0, bounds=(0.0, 1.0), **options)

    def _path(self, study: Study) -> _Path:
        """Return the state of a study's search in this process."""
        name = study.study_name
        if name not in self._paths:
            self._raise_error_if_multi_objective(study)
            self._paths[name] = _Path(self._made(self._agreed_seed(study)))
        return self._paths[name]

    def _agreed_seed(self, study: Study) -> int:
        """Return the seed that all samplers of a study use; refuse a sampler of another kind."""
        storage, number = study._storage, study._study_id
        kept = storage.get_study_system_attrs(number).get(_SETTING)
        seed = self._seed
        if seed is None:
            seed = json.loads(kept)["seed"] if kept else fresh_seed()
        setting = json.dumps(
            {
                "strategy": self._strategy.name,
                "seed": seed,
                "sigma0": self._sigma0,
                "parameters": len(self._searched),
                "options": {name: str(value) for name, value in sorted(self._options.items())},
            }
        )
        if kept is None:
            storage.set_study_system_attr(number, _SETTING, setting)
        elif kept != setting:
            raise ValueError(
                f"the study {study.study_name!r} was started with the sampler {kept}; it cannot "
                f"continue with {setting}"
            )
        return seed

    def _replayed(self, study: Study, trial: FrozenTrial) -> NDArray[np.float64]:
        """Return the candidate of a finished trial, by replaying the search."""
        place = trial.system_attrs.get(_PLACE)
        if place is None:
            raise ValueError(f"trial {trial.number} was not sampled by this sampler")
        path = _Path(self._made(self._agreed_seed(study)))
        path.follow(study, until=place[0])
        return np.array(path.es.ask()[place[1]])

    def _named(self, point: NDArray[np.float64]) -> dict[str, Any]:
        shares = dict(zip(self._searched, point, strict=True))
        return {name: axis.value(shares.get(name, 0.0)) for name, axis in self._axes.items()}


@dataclass
class _Path:
    """The search up to the finished trials of a study."""

    es: Optimizer  # The strategy at the first generation that is not finished.
    seen: int = 0  # Trials processed so far.
    # Those that are running, or belong to this generation or a later one, by number.
    open: dict[int, FrozenTrial] = field(default_factory=dict)

    def point_for(self, study: Study, trial: FrozenTrial) -> NDArray[np.float64]:
        """Return a candidate for a trial, and store which one it is."""
        place = trial.system_attrs.get(_PLACE)
        if place is None and "fixed_params" in trial.system_attrs:
            return np.array(self.es.mean)  # enqueued by the user: no candidate of the search
        if place is None or place[0] != self.es.generation:
            self.follow(study)
        if place is None:
            place = (self.es.generation, self._free_row())
            study._storage.set_trial_system_attr(trial._trial_id, _PLACE, list(place))
        return np.array(self.es.ask()[place[1]])

    def follow(self, study: Study, until: float = math.inf) -> None:
        """Tell the strategy the generations that have finished, up to generation `until`."""
        sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
        trials = study._storage.get_all_trials(study._study_id, deepcopy=False)
        # A trial may get its place long after its number, so those that were running are looked at
        # again.
        self.open = {number: trials[number] for number in self.open}
        self.open |= {trial.number: trial for trial in trials[self.seen :]}
        self.seen = len(trials)
        while self.es.generation < until:
            values = self._finished_values(sign)
            if len(values) < len(self.es.ask()):
                break
            self.es.tell([values[row] for row in range(len(values))])
        self.open = {
            number: trial
            for number, trial in self.open.items()
            if not trial.state.is_finished() or self._generation(trial) >= self.es.generation
        }

    def _finished_values(self, sign: float) -> dict[int, float]:
        """Return the first value of each finished row of this generation."""
        done = [t for t in self._now() if t.state.is_finished()]
        done.sort(key=lambda t: (t.datetime_complete is None, t.datetime_complete, t.number))
        values: dict[int, float] = {}
        for trial in done:
            complete = trial.state == TrialState.COMPLETE and trial.value is not None
            value = sign * trial.value if complete else math.nan  # type: ignore[operator]
            values.setdefault(trial.system_attrs[_PLACE][1], value)
        return values

    def _free_row(self) -> int:
        """Return a row that is not being evaluated yet, or the one running longest."""
        finished, newest = set(), {}
        for trial in self._now():
            row = trial.system_attrs[_PLACE][1]
            if trial.state.is_finished():
                finished.add(row)
            newest[row] = max(newest.get(row, -1), trial.number)
        rows = range(len(self.es.ask()))
        untaken = [row for row in rows if row not in newest]
        if untaken:
            return untaken[0]
        return min((row for row in rows if row not in finished), key=lambda row: newest[row])

    def _now(self) -> list[FrozenTrial]:
        return [t for t in self.open.values() if self._generation(t) == self.es.generation]

    @staticmethod
    def _generation(trial: FrozenTrial) -> int:
        place = trial.system_attrs.get(_PLACE)
        return -1 if place is None else place[0]


@dataclass(frozen=True)
class _Axis:
    """One parameter: the map between its range and the interval from 0 to 1."""

    kind: FloatDistribution | IntDistribution

    def value(self, share: float) -> float | int:
        low, high = self._ends()
        at = low + float(share) * (high - low)
        if self.kind.log:
            at = math.exp(at)
        if self.kind.step is not None:
            at = self.kind.low + round((at - self.kind.low) / self.kind.step) * self.kind.step
        at = min(max(at, self.kind.low), self.kind.high)
        return int(at) if isinstance(self.kind, IntDistribution) else float(at)

    def unit(self, value: float | None) -> float:
        if value is None:
            return 0.5
        low, high = self._ends()
        if not self.kind.low <= value <= self.kind.high:
            raise ValueError(f"x0 must lie in [{self.kind.low}, {self.kind.high}], not {value!r}")
        return ((math.log(value) if self.kind.log else float(value)) - low) / (high - low)

    def _ends(self) -> tuple[float, float]:
        # Half a step more on both sides, so that the ends are as likely as the rest.
        half = 0.0 if self.kind.step is None else self.kind.step / 2
        low, high = self.kind.low - half, self.kind.high + half
        return (math.log(low), math.log(high)) if self.kind.log else (float(low), float(high))


def _axis(name: str, kind: BaseDistribution) -> _Axis:
    if not isinstance(kind, FloatDistribution | IntDistribution):
        raise ValueError(
            f"the parameter {name!r} must have a float or an integer distribution, not {kind}: "
            "omit it from search_space, and the independent sampler chooses it"
        )
    if not math.isfinite(kind.high - kind.low):
        raise ValueError(
            f"the parameter {name!r} must have a range whose width is a finite number, not {kind}"
        )
    return _Axis(kind)
