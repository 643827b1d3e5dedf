"""``mmes problems``: the built-in problems, as a list or one by one."""

from __future__ import annotations

from mmes.cli.arguments import Parser
from mmes.cli.status import OK, Mistake
from mmes.problems import entries, get


def problems(argv: list[str]) -> int:
    """Run ``mmes problems`` and return the exit code."""
    parser = Parser(
        prog="mmes problems",
        description="List the built-in problems, or describe one of them.",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="the problem to describe")
    name = parser.parsed(argv).name
    if name is None:
        width = max(len(entry.name) for entry in entries())
        for entry in entries():
            size = "any n" if entry.dimension is None else f"n = {entry.dimension}"
            print(f"{entry.name:<{width}}  {size:<9}  {entry.description}")
        return OK
    try:
        problem = get(name)
    except (TypeError, ValueError) as error:
        raise Mistake(str(error)) from error
    (entry,) = [entry for entry in entries() if entry.name == problem.name]
    low, high = float(problem.lower.min()), float(problem.upper.max())
    size = f"any (default {problem.dimension})" if entry.dimension is None else entry.dimension
    print(f"{problem.name}: {entry.description}")
    print(f"  variables  {size}")
    print(f"  box        [{low:g}, {high:g}]")
    print(f"  minimum    {'not known' if problem.minimum is None else f'{problem.minimum:g}'}")
    print(f"  options    {', '.join(entry.options) or 'none'}")
    print(f"  try        mmes run {problem.name} --max-evaluations 1e5")
    return OK
