"""The command ``mmes``: optimize, resume, and check the installation from a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from mmes.base.loading import entry_points
from mmes.base.version import __version__
from mmes.cli.arguments import Parser
from mmes.cli.status import INTERRUPTED, OK, TERMINATED, USER_MISTAKE, Mistake, mistake_of, say
from mmes.errors import Terminated

DESCRIPTION = """\
Minimise functions of many variables without gradients.

First steps:
  mmes run sphere --dim 100 --target 1e-8          minimise a built-in problem
  mmes run model.py:loss --x0 start.npy --sigma0 0.5 --workers 4 --checkpoint run.mmes
                                                   minimise the function loss in your model.py
  mmes resume run.mmes model.py:loss               continue after Ctrl-C, a crash or a reboot
  mmes doctor                                      check the installation

Commands:
  run         minimise a function
  resume      continue a run from its checkpoint
  problems    list the built-in problems
  doctor      check the installation and estimate the memory a run needs
  bench       compare strategies on a problem   (needs mmes[bench])
  compete     compare strategies on a suite     (needs mmes[bench])
  reproduce   reproduce the paper's tables      (needs mmes[bench])
  report      write an HTML report              (needs mmes[report])
  coco        run a COCO suite                  (needs mmes[coco])

Use 'mmes COMMAND --help' for the flags of a command.
"""

EPILOG = """\
exit codes:
  0 success   1 target not reached, or a check or run failed   2 invalid command line
  3 the objective failed   4 the checkpoint cannot be used   130 Ctrl-C   143 SIGTERM
"""


REGISTERED = "mmes.commands"
"""The group of entry points under which the laboratory, and other packages, name commands."""


def _commands() -> dict[str, Callable[[], Callable[[list[str]], int]]]:
    """Return a loader for each command; commands are imported when called, so that help is fast."""

    def own(name: str, module: str) -> Callable[[], Callable[[list[str]], int]]:
        return lambda: vars(import_module(f"mmes.cli.{module}"))[name]

    found = {name: entry.load for name, entry in entry_points(REGISTERED).items()}
    modules = {"run": "run", "resume": "resume", "doctor": "doctor"}
    return found | {name: own(name, module) for name, module in modules.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of the process, and return its exit code.

    A mistake prints one line.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(arguments)
    except Mistake as mistake:
        say(f"mmes: {mistake}")
        return mistake.status
    except KeyboardInterrupt:
        say("mmes: interrupted")
        return INTERRUPTED
    except Terminated:
        return TERMINATED
    except BrokenPipeError:
        # The reader of a pipe has gone, for example `mmes problems | head`: nothing to complain of.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        print(DESCRIPTION)
        return USER_MISTAKE
    command, rest = arguments[0], arguments[1:]
    commands = _commands()
    if command in commands:
        try:
            chosen = commands[command]()
        except ImportError as error:  # a missing extra; the message says which
            raise Mistake(str(error)) from error
        return chosen(rest)
    top = Parser(prog="mmes", description=DESCRIPTION, epilog=EPILOG, usage="mmes COMMAND ...")
    top.add_argument("--version", action="version", version=f"mmes {__version__}")
    top.add_argument("command", nargs="?", help="the command; see above")
    top.parsed([command])  # answers --help and --version, and refuses unknown flags
    raise mistake_of(command, tuple(commands), "command")
