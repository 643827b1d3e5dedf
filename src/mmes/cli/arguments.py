"""Command-line flags, generated from the option tables."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mmes.base.options import Option, suggestion
from mmes.cli.status import Mistake


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `Mistake` instead of exiting.

    A command with expert flags gives the arguments to parse: ``--help`` hides the flags,
    ``--help-all`` shows them.
    """

    def __init__(self, args: Sequence[str] | None = None, **options: Any):
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options
        )
        self.shows_all = args is None or "--help-all" in args
        if args is not None:
            self.add_argument(
                "--help-all",
                action="help",
                help="show this help with all flags, also those for experts",
            )

    def parsed(self, args: Iterable[str]) -> argparse.Namespace:
        """Parse the arguments; a value such as -5,5 or -inf,5 is not mistaken for a flag."""
        joined: list[str] = []
        for word in args:
            value = re.match(r"-([\d.]|inf|nan)", word, re.IGNORECASE)
            if value and joined and re.fullmatch(r"--[a-z0-9-]+", joined[-1]):
                joined[-1] += f"={word}"
            else:
                joined.append(word)
        found, unknown = self.parse_known_args(joined)
        if unknown:
            near = suggestion(unknown[0].split("=")[0], self._option_string_actions)
            near = near if "did you mean" in near else ""
            self.error(f"there is no flag {unknown[0]!r}{near}")
        return found

    def error(self, message: str) -> NoReturn:
        """Raise the error as a `Mistake`."""
        raise Mistake(f"{message} (see '{self.prog} --help')")


def add_options(parser: Parser, title: str, table: Iterable[Option], saved: bool = False) -> Any:
    """Add one flag for each option of a table, under a title, and return the group.

    Flags that are not given are omitted from the result; the options of a `saved` run stay
    unchanged.
    """
    group = parser.add_argument_group(title)
    for option in table:
        flag = "--" + option.name.replace("_", "-")
        default = "unchanged" if saved else option.shown_default
        text = f"{option.text} (default: {default})".replace("%", "%%")
        if option.expert and not parser.shows_all:
            text = argparse.SUPPRESS
        if option.kind is bool:
            group.add_argument(
                flag,
                action=argparse.BooleanOptionalAction,
                default=argparse.SUPPRESS,
                help=text,
            )
            continue
        group.add_argument(
            flag,
            dest=option.name,
            type=_converter(option),
            default=argparse.SUPPRESS,
            metavar=_metavar(option),
            help=text,
        )
    return group


def chosen(arguments: argparse.Namespace, table: Iterable[Option]) -> dict[str, Any]:
    """Return the options of a table that were given on the command line."""
    given = vars(arguments)
    return {option.name: given[option.name] for option in table if option.name in given}


def _metavar(option: Option) -> str:
    words = "|".join(option.words)
    if option.kind is str:
        return words or "TEXT"
    return ("N" if option.kind is int else "X") + (f"|{words}" if words else "")


def _converter(option: Option) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        value: Any = text
        if option.kind is not str and text not in {*option.choices, *option.words}:
            value = number(text)
        try:
            return option.check(value)
        except (TypeError, ValueError):
            raise argparse.ArgumentTypeError(f"must be {option.allowed}, not {text!r}") from None

    return convert


def number(text: str) -> Any:
    """Return the number in a text (1e6 counts as an integer), or the text itself."""
    try:
        value = float(text)
    except ValueError:
        return text
    try:
        return int(text)
    except ValueError:
        return int(value) if value.is_integer() else value


def integers(text: str) -> list[int]:
    """Return the integers of a list with ranges, such as 1,2 or 1-5."""
    found: list[int] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if not low.isdigit() or (dash and not high.isdigit()):
            raise argparse.ArgumentTypeError(f"must be integers such as 1,2 or 1-5, not {text!r}")
        found += range(int(low), int(high or low) + 1)
    return found


def assignment(text: str, flag: str) -> tuple[str, Any]:
    """Return the name and the value of NAME=VALUE."""
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise Mistake(f"{flag} must be NAME=VALUE, not {text!r}")
    words = {"true": True, "false": False}
    return name, words.get(value.lower(), number(value))


def vector_of(flag: str) -> Callable[[str], Any]:
    """Return the converter of a flag that takes a vector; files are read when it is parsed."""
    return lambda text: vector(text, flag)


def vector(text: str, flag: str) -> Any:
    """Return the numbers in a text: one number, numbers separated by commas, or a file of numbers.

    Files are .npy, or text with one or more numbers per line.
    """
    entries = text.split(",")
    parts = [number(part) for part in entries if part.strip()]
    if parts and all(not isinstance(part, str) for part in parts):
        if len(parts) < len(entries):
            raise Mistake(f"{flag}: an entry between commas is empty in {text!r}")
        return np.array(parts, dtype=float) if "," in text else float(parts[0])
    path = Path(text)
    if not path.is_file():
        looks = os.sep in text or path.suffix
        raise Mistake(
            f"{flag}: there is no file {text}"
            if looks
            else f"{flag} must be a number, numbers separated by commas, or a file, not {text!r}"
        )
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        return np.loadtxt(path, delimiter="," if "," in path.read_text() else None)
    except (ValueError, OSError) as error:
        raise Mistake(f"{flag}: {path} does not contain numbers ({error})") from error
