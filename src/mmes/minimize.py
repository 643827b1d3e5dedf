"""The two calls that do it all: `minimize` a function, and `resume` a run from its checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from mmes.base.options import OptionTable
from mmes.evaluate.arguments import with_arguments
from mmes.evaluate.protocol import SharesResult
from mmes.run.loop import Run
from mmes.run.options import RUN_OPTIONS
from mmes.run.progress import Progress
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
    **options: Any,
) -> Result:
    """Minimise a function of many variables without gradients.

    Parameters
    ----------
    fun : callable
        The objective: one point in, one real number out; or, with ``vectorized=True``, a (k, n)
        array in, k numbers out. The arrays are read-only. NaN marks a failed evaluation: it ranks
        last. `mmes.Factory` is one that is made in each process. None where `workers` is an
        evaluator of your own.
    x0 : array_like, optional
        Start point. It is evaluated first, so that no result is worse, unless f is noisy
        (`evaluate_x0`). May be left out where `bounds` are finite: the start is then uniform in the
        box.
    sigma0 : float, optional
        Start mutation strength: about a third of the distance, along a typical variable, within
        which the optimum is expected. May be left out where `bounds` are finite: 0.3 of the width
        of the box.
    bounds : tuple, list or None
        (lower, upper), each a number or one entry per variable; one pair (low, high) per variable;
        or an object with `lb` and `ub` such as SciPy's Bounds. Two pairs for two variables are
        pairs, unless only the other reading gives a box. The objective is never evaluated outside.
    scale : array_like, optional
        Typical size of each variable, where they have different units.
    manifold : Manifold, optional
        The space to search, one of `mmes.spaces.manifolds`. Points have its shape: x0, what the
        objective is given (k of them stacked with ``vectorized=True``), and the result. x0 may be
        left out: the start is then random.
    constraints : callable, constraint, or a list of them, optional
        A function g, feasible where g(x) <= 0 in all entries (with ``vectorized=True``: (k, n) in,
        (k, m) out); `mmes.Equality(h)` for h(x) = 0; SciPy's NonlinearConstraint, LinearConstraint
        and dicts. They may be violated on the way: the result is feasible up to
        `constraint_tolerance`, or says that it is not.
    integers : array_like or bool, optional
        Which variables are integers: their indices, a mask, or True for all. The objective and the
        constraints see rounded values, and `Result.x` holds them.
    strategy : str or class
        The strategy that searches; see `mmes.strategies`. ``"auto"`` takes active CMA-ES for up
        to 100 variables and AdaptiveMMES for more, and says so in `Result.strategy`; ``"mmes"`` is
        the paper's algorithm.
    callback : callable, or a list of them, optional
        Called after every generation with a `Progress`, and once more at the end of the run with
        ``progress.final`` True. Returning something true, or raising StopIteration, ends the run.
        One with a method `close` is closed when the run ends, whatever ended it.
    progress : bool
        Whether to show the progress on stderr: a live line on a terminal where `rich` is
        installed, else a line every few seconds.
    args : tuple
        Further arguments of the objective: it is called as ``fun(x, *args)``.
    catch : tuple of exception types
        Exceptions of the objective that make a failed candidate instead of ending the run.
    workers : int, executor, callable or evaluator, optional
        Who evaluates: None this process; a number so many worker processes, -1 one per core, which
        are replaced when they die; an executor in the manner of `concurrent.futures` (also a Dask
        client), or a function that makes one; or an evaluator of your own, an object with the
        methods `evaluate` and `close` (see `mmes.evaluate.protocol.Evaluator`). The result is the
        same to the bit.
    checkpoint : str or path, optional
        File to which the state is written every `checkpoint_seconds`, at the end, and when an
        error, Ctrl-C or SIGTERM ends the run; `mmes.resume` goes on from it. An existing one is
        never overwritten by a new run.
    **options
        Limits: `target`, `max_evaluations`, `max_generations`, `time_limit`, `restarts`,
        `reevaluations`. Constraints: `constraint_tolerance`, `returns_constraints`. Evaluation:
        `vectorized`, `evaluation_timeout`, `retries`, `on_lost`,
        `chunk_size`. Checkpoints: `checkpoint_seconds`, `checkpoint_generations`,
        `checkpoint_strict`, `resume`. And all options of the strategy (see
        ``mmes.AdaptiveMMES.option_table()``), among them `seed`. `mmes.options` shows what each
        does.

    Returns
    -------
    Result
        The best point observed and how it was found.

    Raises
    ------
    EvaluationError
        If the objective raised (from the original exception), or a worker was lost too often.
    TypeError, ValueError
        If the objective returned what is no value, or an argument is wrong.
    KeyboardInterrupt, Terminated
        On Ctrl-C and SIGTERM. Where the objective or a signal ended the run, the attribute `result`
        of the error holds what was found until then.
    CheckpointExists
        If there is a file at `checkpoint` already.

    Examples
    --------
    >>> import mmes, numpy as np
    >>> result = mmes.minimize(lambda x: float(x @ x), np.ones(100), 1.0, target=1e-8, seed=1)
    >>> result.success
    True
    """
    return _shared(
        workers,
        with_arguments(fun, args),
        lambda: Run(
            fun,
            x0,
            sigma0,
            bounds=bounds,
            scale=scale,
            manifold=manifold,
            constraints=constraints,
            integers=integers,
            strategy=strategy,
            callback=callback,
            progress=progress,
            args=args,
            catch=catch,
            workers=workers,
            checkpoint=checkpoint,
            **options,
        ),
    )


def options(strategy: str | type[Optimizer] = "auto") -> OptionTable:
    """Return all options of `minimize` with a strategy; what it shows is a table.

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
    **limits: Any,
) -> Result:
    """Go on with a run from its checkpoint, to the bit as if it had never stopped.

    Parameters
    ----------
    path : str or path
        The checkpoint. If it is damaged, the one before it is taken, with a warning.
    fun : callable
        The objective: a checkpoint holds no code.
    strategy : class, optional
        The strategy, if it is not one of the library's own.
    callback, progress, args, catch, workers
        As in `minimize`; they may differ from those of the run that was interrupted.
    constraints : callable, constraint, or a list of them, optional
        Those of the run, which are code too; needed where it had any.
    checkpoint : str or path, optional
        Where to write from now on; by default `path`.
    **limits
        Limits and evaluation options of `minimize` that are to change, for example a larger
        `max_evaluations`; those not given stay. A `time_limit` counts anew. `kernel` and `threads`
        may change too.

    Returns
    -------
    Result
        As of `minimize`. Resuming a run that had ended gives its result again.

    Raises
    ------
    FileNotFoundError, CheckpointCorrupt, CheckpointTooNew
        If there is no checkpoint that can be used.
    """
    return _shared(
        workers,
        with_arguments(fun, args),
        lambda: resumed_run(
            path,
            fun,
            strategy=strategy,
            callback=callback,
            progress=progress,
            args=args,
            constraints=constraints,
            catch=catch,
            workers=workers,
            checkpoint=checkpoint,
            **limits,
        ),
    )


def _shared(workers: Any, fun: Any, make: Callable[[], Run]) -> Result:
    """Run here; where every process of a job makes this call (MPI), in one of them for all."""
    if isinstance(workers, SharesResult):
        return workers.share(lambda: make().run(), fun)
    return make().run()


def resumed_run(
    path: str | os.PathLike[str],
    fun: Callable[[Any], Any] | None,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    **changes: Any,
) -> Run:
    """Return what `resume` would run, not yet running; parameters are the same."""
    from mmes import checkpoint as files

    entries, arrays = files.read(path)
    run = Run.from_state(entries | {"arrays": arrays}, fun, **changes)
    run.write_to(path if checkpoint is None else checkpoint, over=path)
    return run
