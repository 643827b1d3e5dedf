"""The two main calls: `minimize` a function, and `resume` a run from its checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from mmes.base.options import OptionTable
from mmes.evaluate.arguments import with_arguments, with_batches
from mmes.evaluate.protocol import SharesResult
from mmes.run.loop import Run
from mmes.run.observing.progress import Progress
from mmes.run.options import RUN_OPTIONS
from mmes.run.result import Result
from mmes.spaces.manifolds import Manifold
from mmes.strategies import Optimizer, options_of

__all__ = ["RUN_OPTIONS", "Run", "minimize", "options", "resume"]


def minimize(
    fun: Callable[[Any], Any] | None,
    x0: ArrayLike | None = None,
    sigma0: float | None = None,
    *,
    bounds: Any = None,
    scale: ArrayLike | None = None,
    manifold: Manifold | None = None,
    constraints: Any = None,
    integers: Any = None,
    strategy: str | type[Optimizer] = "auto",
    callback: Callable[[Progress], Any] | Sequence[Callable[[Progress], Any]] | None = None,
    progress: bool = False,
    args: Any = (),
    catch: tuple[type[BaseException], ...] = (),
    workers: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    batches: Any = None,
    validation: Callable[[Any], Any] | None = None,
    **options: Any,
) -> Result:
    """Minimise a function of many variables without gradients.

    Parameters
    ----------
    fun : callable
        The objective. It takes one point and returns one real number; with ``vectorized=True`` it
        takes a (k, n) array and returns k numbers. The arrays are read-only. A value of NaN marks a
        failed evaluation, which ranks last. Use `mmes.Factory` for an objective that must be
        created in each worker process. None if `workers` is your own evaluator.
    x0 : array_like, optional
        Start point. It is evaluated first, so that the result is never worse unless the objective
        is noisy (see `evaluate_x0`). Optional if all `bounds` are finite: the start point is then
        drawn uniformly from the box.
    sigma0 : float, optional
        Initial mutation strength (step size): about a third of the distance, along a typical
        variable, within which the optimum is expected. Optional if all `bounds` are finite: the
        default is then 0.3 of the width of the box.
    bounds : tuple, list or None
        (lower, upper), each a number or one entry per variable; or one pair (low, high) per
        variable; or an object with `lb` and `ub` such as SciPy's Bounds. With two variables, two
        pairs are read as one pair per variable, unless that is not a valid box. The objective is
        never evaluated outside the bounds.
    scale : array_like, optional
        Typical size of each variable, for variables with different units.
    manifold : Manifold, optional
        The search space, one of `mmes.spaces.manifolds`. All points have its shape: x0, the
        argument of the objective (k of them stacked with ``vectorized=True``) and the result. x0 is
        optional: the default is a random point of the manifold.
    constraints : callable, constraint, or a list of them, optional
        A function g, feasible where g(x) <= 0 in all entries (with ``vectorized=True``: (k, n) in,
        (k, m) out); `mmes.Equality(h)` for h(x) = 0; SciPy's NonlinearConstraint, LinearConstraint
        and dicts. They may be violated during the search. The result is feasible up to
        `constraint_tolerance`, or says that it is not.
    integers : array_like or bool, optional
        Which variables are integers: their indices, a mask, or True for all. The objective and the
        constraints receive rounded values, and `Result.x` is rounded too.
    strategy : str or class
        The search strategy; see `mmes.strategies`. ``"auto"`` is active CMA-ES for up to 100
        variables and AdaptiveMMES for more; `Result.strategy` says which one was used. ``"mmes"``
        is the algorithm of the paper.
    callback : callable, or a list of them, optional
        Called after every generation with a `Progress`, and once more at the end of the run with
        ``progress.final`` True. The run stops if a callback returns a true value or raises
        StopIteration. If a callback has a method `close`, it is called when the run ends, for
        whatever reason.
    progress : bool
        Whether to show the progress on stderr: a live line if stderr is a terminal and `rich` is
        installed, otherwise a line every few seconds.
    args : tuple
        Extra arguments of the objective, which is called as ``fun(x, *args)``.
    catch : tuple of exception types
        Exceptions of the objective that count as a failed evaluation instead of ending the run.
    workers : int, executor, callable or evaluator, optional
        Where the objective is evaluated. None: in this process. A number: in that many worker
        processes (-1: one per core), which are replaced if they die. An executor with the interface
        of `concurrent.futures` (also a Dask client), or a function that creates one. Or your own
        evaluator, an object with the methods `evaluate` and `close` (see
        `mmes.evaluate.protocol.Evaluator`). The result is the same to the bit in all cases.
    checkpoint : str or path, optional
        File to which the state is written every `checkpoint_seconds`, at the end, and when an
        error, Ctrl-C or SIGTERM ends the run. `mmes.resume` continues from it. A new run never
        overwrites an existing file.
    batches : callable or iterable, optional
        Batches of data: the objective is called as ``fun(x, batch)``, with the same batch for all
        candidates of a generation and the next one in the next generation. An iterable, such as a
        DataLoader, is read again at its end; or a function of the generation's number, with which a
        resumed run sees the same batches. The step size is then learnt by probes, and `Result.x` is
        the mean of the search.
    validation : callable, optional
        A loss on held-out data, called with the mean every `validation_every` generations.
        `Result.x` is then the mean with the best validation loss, `target` refers to that loss, and
        the run stops after `patience` validations without improvement.
    **options
        Limits: `target`, `max_evaluations`, `max_generations`, `time_limit`, `restarts`,
        `reevaluations`. Validation: `validation_every`, `patience`. Constraints:
        `constraint_tolerance`, `returns_constraints`. Evaluation: `vectorized`,
        `evaluation_timeout`, `retries`, `on_lost`, `chunk_size`. Checkpoints: `checkpoint_seconds`,
        `checkpoint_generations`, `checkpoint_strict`, `resume`. And all options of the
        strategy, among them `seed`. ``mmes.options()`` describes each of them.

    Returns
    -------
    Result
        The best point found, its value, and how the run ended.

    Raises
    ------
    EvaluationError
        If the objective raised an exception (which is chained), or a worker was lost too often.
    TypeError, ValueError
        If the objective returned something that is not a real number, or an argument is invalid.
    KeyboardInterrupt, Terminated
        On Ctrl-C and SIGTERM. If a signal, the objective, batches, validation or a callback ended
        the run, the attribute `result` of the exception holds the result so far.
    CheckpointExists
        If the file `checkpoint` already exists.

    Examples
    --------
    >>> import mmes, numpy as np
    >>> result = mmes.minimize(lambda x: float(x @ x), np.ones(100), 1.0, target=1e-8, seed=1)
    >>> result.success
    True
    """
    given = dict(locals())  # all arguments, as they were given
    return _shared(Run, given.pop("options") | given)


def options(strategy: str | type[Optimizer] = "auto") -> OptionTable:
    """Return all options of `minimize` for a strategy; printed, they are a table.

    Parameters
    ----------
    strategy : str or class
        The strategy; for ``"auto"`` the options of all strategies that it may choose.

    Examples
    --------
    >>> table = mmes.options()
    >>> print(next(option.allowed for option in table if option.name == "restarts"))
    an integer >= 0, or 'unlimited'
    """
    return OptionTable(RUN_OPTIONS + options_of(strategy))


def resume(
    path: str | os.PathLike[str],
    fun: Callable[[Any], Any] | None,
    *,
    strategy: str | type[Optimizer] | None = None,
    callback: Callable[[Progress], Any] | Sequence[Callable[[Progress], Any]] | None = None,
    progress: bool = False,
    args: Any = (),
    constraints: Any = None,
    catch: tuple[type[BaseException], ...] = (),
    workers: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    batches: Any = None,
    validation: Callable[[Any], Any] | None = None,
    **limits: Any,
) -> Result:
    """Continue a run from its checkpoint, to the bit as if it had never been interrupted.

    Parameters
    ----------
    path : str or path
        The checkpoint. If it is damaged, the previous one is used, with a warning.
    fun : callable
        The objective; a checkpoint contains no code.
    strategy : class, optional
        The strategy, if it is not a built-in one.
    callback, progress, args, catch, workers
        As in `minimize`; they may differ from those of the run that was interrupted.
    constraints : callable, constraint, or a list of them, optional
        The constraints of the run, which a checkpoint does not contain; needed if it had any.
    checkpoint : str or path, optional
        Where to write further checkpoints; by default to `path`.
    batches, validation
        Those of the run, needed where it had any. An iterable is read up to the batch that is next;
        of an iterator the next batch is taken, with a warning.
    **limits
        New values of limits and evaluation options of `minimize`, for example a larger
        `max_evaluations`; the others stay unchanged. A `time_limit` starts again. `kernel` and
        `threads` may change too.

    Returns
    -------
    Result
        As for `minimize`. Resuming a run that had finished returns its result again.

    Raises
    ------
    FileNotFoundError, CheckpointCorrupt, CheckpointTooNew
        If there is no usable checkpoint.
    """
    given = dict(locals())  # all arguments, as they were given
    return _shared(resumed_run, given.pop("limits") | given)


def _shared(make: Callable[..., Run], given: dict[str, Any]) -> Result:
    """Make a run with the arguments that were given, and run it.

    If every process of a job makes this call (MPI), it runs in one of them for all.
    """
    workers, constraints = given["workers"], given["constraints"]
    if not isinstance(workers, SharesResult):
        return make(**given).run()
    fun = with_batches(with_arguments(given["fun"], given["args"]), given["batches"], workers)

    def objective(vectorized: bool, returned: bool) -> Any:
        if constraints is None and not returned:
            return fun
        from mmes.constraints import Constraints  # here: few runs need them

        held = Constraints.checked(constraints, returned)
        return fun if held is None else held.objective(fun, vectorized)

    return workers.share(lambda: make(**given).run(), objective)


def resumed_run(
    path: str | os.PathLike[str],
    fun: Callable[[Any], Any] | None,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    **changes: Any,
) -> Run:
    """Return the run of `resume` without starting it; parameters are the same."""
    from mmes import checkpoint as files

    entries, arrays = files.read(path)
    run = Run.from_state(entries | {"arrays": arrays}, fun, **changes)
    run.write_to(path if checkpoint is None else checkpoint, over=path)
    return run
