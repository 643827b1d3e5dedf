"""Options: each declared once, with its name, symbol, type, range, default and text.

Validation, the command line's flags and the reference tables of the documentation are derived from
these declarations.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

FOREIGN = {
    "maxiter": "max_generations limits the generations, max_evaluations the evaluations",
    "max_iter": "max_generations limits the generations, max_evaluations the evaluations",
    "maxfun": "it is called max_evaluations here",
    "options": "pass each option as a separate argument, such as max_generations",
    "method": "it is called strategy here; mmes.strategies.STRATEGIES lists the names",
    "dimension": "the number of variables follows from x0 or the bounds",
    "dim": "the number of variables follows from x0 or the bounds",
    "maxfev": "it is called max_evaluations here",
    "maxfevals": "it is called max_evaluations here",
    "max_nfev": "it is called max_evaluations here",
    "budget": "it is called max_evaluations here",
    "timeout": "it is called time_limit here; evaluation_timeout is the limit of one evaluation",
    "tol": "xtol and ftol define convergence; target stops a run at a value",
    "ftarget": "it is called target here",
    "popsize": "it is called population_size here",
    "disp": "progress=True shows the progress",
    "verbose": "progress=True shows the progress",
    "n_jobs": "it is called workers here",
    "random_state": "it is called seed here and must be an integer",
    "rng": "it is called seed here and must be an integer",
    "kwargs": "bind them with functools.partial(fun, name=value)",
    "jac": "derivatives are not used",
    "constraints": "mmes.minimize takes them; for ask and tell, see mmes.constraints.Lagrangian",
}
"""Names that other libraries use, and what to use here. They are not aliases: the meanings differ
in details, which a silent translation would hide."""


MOST_NAMES = 12
"""Maximum number of names in a message."""


@dataclass(frozen=True)
class Option:
    """One option of a strategy or of `minimize`.

    Attributes
    ----------
    name : str
        The keyword.
    kind : type
        ``int``, ``float``, ``bool`` or ``str``.
    text : str
        What it does, in one sentence.
    default : object
        The default value; None if it follows from others by the formula in `default_text`.
    symbol : str
        The paper's symbol, if it has one.
    default_text : str
        The default as documentation shows it, if it is a formula.
    low, high : float or None
        The range of a number.
    low_open, high_open : bool
        Whether the end itself is excluded.
    advice : str
        Advice in the message about a value of a wrong type.
    choices : collection of str
        Allowed words: all values of a ``str`` option, or those besides the numbers of a numeric
        one.
    spelt : mapping of str to str
        Words that are shown and accepted for some of the choices.
    expert : bool
        Whether only ``--help-all`` shows it.
    """

    name: str
    kind: type
    text: str
    default: Any = None
    symbol: str = ""
    default_text: str = ""
    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False
    advice: str = ""
    choices: Collection[str] = field(default=(), hash=False)  # may be the keys of a registry
    spelt: Mapping[str, str] = field(default_factory=dict, hash=False)
    expert: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The allowed words as they are shown."""
        return tuple(self.spelt.get(choice, choice) for choice in self.choices)

    @property
    def shown_default(self) -> Any:
        """The default as it is shown."""
        word = self.default if isinstance(self.default, str) else ""
        return self.default_text or self.spelt.get(word, self.default)

    @property
    def allowed(self) -> str:
        """What may be given, in words, for messages and documentation."""
        words = " or ".join(f"'{word}'" for word in self.words)
        if self.kind is bool:
            return "True or False"
        if self.kind is str:
            return words or "a string"
        noun = "an integer" if self.kind is int else "a finite number"
        ends = (
            (">" if self.low_open else ">=", self.low),
            ("<" if self.high_open else "<=", self.high),
        )
        bounds = " and ".join(
            # All digits of an integer: 2^64 - 1 is not 1.8e19.
            f"{sign} {end if isinstance(end, int) else format(end, 'g')}"
            for sign, end in ends
            if end is not None
        )
        number = f"{noun} {bounds}".strip()
        return f"{number}, or {words}" if words else number

    def check(self, value: Any) -> Any:
        """Return the value as its type, or raise TypeError or ValueError with a sentence."""
        if value is None and (self.default is None or self.default_text):
            return None
        if isinstance(value, str) and self.kind is not bool:
            if value in self.choices or (self.kind is str and not self.choices):
                return value
            for choice, word in self.spelt.items():
                if value == word:
                    return choice
            raise ValueError(f"{self.name} must be {self.allowed}, not {value!r}")
        if self.kind is bool and isinstance(value, bool | np.bool_):
            return bool(value)
        if self.kind in (bool, str) or not is_real(value):
            advice = f"; {self.advice}" if self.advice else ""
            raise TypeError(f"{self.name} must be {self.allowed}, not {_in_text(value)}{advice}")
        number = as_float(value) if self.kind is float else _whole(value)
        if number is None or not self._inside(number):
            raise ValueError(f"{self.name} must be {self.allowed}, not {value!r}")
        return number

    def _inside(self, number: float) -> bool:
        if self.kind is float and not math.isfinite(number):
            return False
        above = self.low is None or number > self.low or (number == self.low and not self.low_open)
        below = (
            self.high is None or number < self.high or (number == self.high and not self.high_open)
        )
        return above and below


class OptionTable(tuple[Option, ...]):
    """Options; printed as a table of names, defaults, allowed values and descriptions."""

    __slots__ = ()

    def __repr__(self) -> str:
        width = max((len(option.name) for option in self), default=0)
        lines = []
        for option in self:
            default = option.default_text or repr(option.shown_default)
            lines += [
                f"{option.name:<{width}}  {option.text}",
                f"{'':<{width}}  {option.allowed}; default: {default}",
            ]
        return "\n".join(lines)


def validated(table: Iterable[Option], given: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Return all options of a table with the given values checked and the defaults filled in.

    Raises TypeError for an unknown option (the message suggests the nearest) or a value of the
    wrong type, and ValueError for a value out of its range.
    """
    options = {option.name: option for option in table}
    for name in given:
        if name not in options:
            hint = f"; {FOREIGN[name]}" if name in FOREIGN else suggestion(name, options)
            if name not in FOREIGN and "did you mean" not in hint and len(options) > MOST_NAMES:
                hint = "; mmes.options() lists all options"
            raise TypeError(f"{owner} has no option {name!r}{hint}")
    return {
        name: option.check(given[name]) if name in given else option.default
        for name, option in options.items()
    }


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return '; did you mean ...?' for the nearest known name, or a list of all if none is near."""
    import difflib  # for the few who mistype a name

    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known names are {', '.join(sorted(known))}" if known else ""


def is_real(value: Any) -> TypeGuard[float]:
    """Return whether this is a real number. A bool is not one, although Python treats it so."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def as_float(value: float) -> float:
    """Return a real number as a float; infinity for one that does not fit into a float."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value > 0 or -1)


def _whole(value: float) -> int | None:
    """Return the integer that a number equals (people write a budget as 1e6), if it is one."""
    if isinstance(value, numbers.Integral) or as_float(value).is_integer():
        return int(value)
    return None


def _in_text(value: Any) -> str:
    return f"{value!r} (a {type(value).__name__})"
