"""What the source keeps to: functions that can be called by heart, files read in one sitting."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import mmes

SOURCE = Path(mmes.__file__).parent
TESTS = Path(__file__).parent.parent
MOST_PARAMETERS = 7
# What users call, with keywords.
PUBLIC = {
    ("minimize.py", "minimize"),
    ("minimize.py", "resume"),
    ("run/loop.py", "__init__"),
    ("lab/clustering/estimator.py", "__init__"),
    ("integrations/scipy.py", "mmes_method"),
    ("integrations/torch_module.py", "__init__"),
    ("integrations/torch.py", "minimize_module"),
}
# Code for the device: Triton takes every pointer and every number as a parameter of its own.
DEVICE_CODE = {f"kernels/gpu/triton_{part}.py" for part in ("code", "learning", "steps")}


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Give the name and the number of parameters of each function, `self` not counted."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            every = node.args
            named = [a.arg for a in every.posonlyargs + every.args + every.kwonlyargs]
            named += [a.arg for a in (every.vararg, every.kwarg) if a is not None]
            yield node.name, len([name for name in named if name not in ("self", "cls")])


def long_calls() -> set[tuple[str, str]]:
    """Return file and name of the functions with too many parameters."""
    found = set()
    for path in sorted(SOURCE.rglob("*.py")):
        file = path.relative_to(SOURCE).as_posix()
        if file not in DEVICE_CODE:
            found |= {(file, name) for name, count in functions(path) if count > MOST_PARAMETERS}
    return found


def test_only_public_functions_have_many_parameters() -> None:
    assert long_calls() == PUBLIC


def test_parameters_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("class A:\n    def f(self, a, /, b, *c, d, **e): ...\nasync def g(): ...\n")
    assert dict(functions(path)) == {"f": 5, "g": 0}


def test_every_public_name_can_be_imported() -> None:
    """Failed before: mmes.Mixture was looked for in a module that had been renamed."""
    checked = 0
    for path in sorted(SOURCE.rglob("__init__.py")):
        module = importlib.import_module(".".join(("mmes", *path.parent.relative_to(SOURCE).parts)))
        for name in getattr(module, "__all__", ()):
            assert getattr(module, name) is not None, f"{module.__name__}.{name}"
            checked += 1
    assert checked > 100


def test_import_mmes_leaves_out_what_few_runs_need() -> None:
    """benchmarks/overhead.py measures the import time."""
    seldom = ("lab", "checkpoint", "constraints", "replicas", "evaluate.workers", "strategies.cma")
    code = (
        "import sys, mmes\n"
        f"print([m for m in {seldom} if f'mmes.{{m}}' in sys.modules])\n"
        "print(mmes.checkpoint.__name__, mmes.replicas.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\nmmes.checkpoint mmes.replicas\n", done.stderr


# The layout


def flat_files(folder: Path) -> list[str]:
    """Return the files of a folder itself, without what is built into it."""
    return [p.name for p in folder.iterdir() if p.is_file() and p.suffix not in (".so", ".pyd")]


def test_few_files_lie_beside_the_packages() -> None:
    assert len(flat_files(SOURCE)) <= 6


def test_no_package_is_a_heap() -> None:
    packages = [p.parent for p in SOURCE.rglob("__init__.py") if p.parent.name != "data"]
    assert len(packages) > 20
    assert [p for p in packages if len(flat_files(p)) > 15] == []


# What is found by its name at run time: types say what strategies, searches and workers offer.
ASKED_BY_NAME = {
    "base/interrupts.py": "who handles a signal",
    "base/loading.py": "code of the user's, by its name",
    "base/tensors.py": "tensors, without an import of torch",
    "cli/carry_out.py": "the result that an error carries",
    "cli/start.py": "arguments of the command line",
    "constraints/given.py": "constraints of SciPy, without an import of it",
    "evaluate/adapter.py": "an evaluator of the user's",
    "evaluate/factory.py": "the name of a function of the user's",
    "evaluate/futures.py": "an executor of Dask",
    "evaluate/protocol.py": "the candidate that an error of the user's carries",
    "evaluate/values.py": "what an objective returned",
    "evaluate/workers/children.py": "the main module's file",
    "evaluate/workers/pickling.py": "objects of the user's",
    "kernels/devices.py": "a device of torch, without an import of it",
    "lab/clustering/estimator.py": "parameters, as scikit-learn has them",
    "lab/clustering/objective.py": "memory of a thread",
    "lab/experiments/analysis/charts.py": "a field that the caller names",
    "lab/experiments/plan.py": "a field that the plan names",
    "lab/experiments/results/store.py": "a type of polars",
    "replicas/mpi.py": "the method for a message",
    "replicas/replica.py": "the method for a message",
    "run/observing/progress.py": "an observer of the user's",
    "run/result.py": "fields by their names, as SciPy has it",
    "run/state.py": "all fields of a dataclass",
    "spaces/bounds.py": "bounds of SciPy",
    "spaces/boxes/box.py": "all fields of a dataclass",
    "spaces/start.py": "what was given in place of a number",
    "strategies/parts/record.py": "all fields of a dataclass",
}


def asks_by_name(path: Path) -> bool:
    """Return whether a file calls `hasattr` or `getattr` on anything but the module `os`."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("hasattr", "getattr")
        and not (isinstance(node.args[0], ast.Name) and node.args[0].id == "os")
        for node in ast.walk(ast.parse(path.read_text()))
    )


def test_attributes_are_asked_for_by_name_only_where_it_is_said_why() -> None:
    files = {p.relative_to(SOURCE).as_posix() for p in SOURCE.rglob("*.py") if asks_by_name(p)}
    adapters = {file for file in files if file.startswith("integrations/")}
    assert files - adapters == set(ASKED_BY_NAME)


# The docstrings


def classes() -> Iterator[type]:
    """Give all classes of the modules that can be imported here."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(("mmes", *path.relative_to(SOURCE).with_suffix("").parts))
        try:
            module = importlib.import_module(name.removesuffix(".__init__"))
        except ImportError:  # of a package that is not installed
            continue
        yield from (
            found
            for found in vars(module).values()
            if isinstance(found, type) and found.__module__ == module.__name__
        )


def undocumented(kind: type) -> list[str]:
    """Return the public methods of a class without a docstring, of their own or inherited."""

    if kind.__name__.startswith("_"):
        return []
    methods = [
        name
        for name, found in vars(kind).items()
        if (inspect.isfunction(found) and found.__name__ == name)  # not the default of a field
        or isinstance(found, classmethod | staticmethod | property)
        if not name.startswith("_")
    ]
    return [
        f"{kind.__name__}.{name}"
        for name in methods
        if not any(vars(base)[name].__doc__ for base in kind.__mro__ if name in vars(base))
    ]


def test_every_public_method_has_a_text_or_inherits_one() -> None:
    assert [name for kind in classes() for name in undocumented(kind)] == []


def test_methods_without_a_text_are_found() -> None:
    class Base:
        def told(self) -> None:
            """Say it."""

    class Child(Base):
        def told(self) -> None: ...

        def untold(self) -> None: ...

        @property
        def silent(self) -> int:
            return 0

    assert undocumented(Child) == ["Child.untold", "Child.silent"]


# The tests

MOST_TESTS_WITH_PRIVATE_NAMES = 8


def is_private(name: str) -> bool:
    """Return whether a name begins with one underscore."""
    return name.startswith("_") and not name.startswith("__") and name != "_"


def names_set(tree: ast.AST) -> set[str]:
    """Return the names that a file defines: functions, classes, variables, attributes."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def private_names(text: str, defined: set[str]) -> set[str]:
    """Return the private names among `defined` that a test uses: as attribute, import or word."""
    tree = ast.parse(text)
    own, used = names_set(tree), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            words = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            used.update(part for word in words for part in word.split("."))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            used.add(node.value.rpartition(".")[2])
    return {name for name in used & defined - own if is_private(name)}


def test_few_tests_use_private_names_of_the_package() -> None:
    defined = {path.stem for path in SOURCE.rglob("*.pyi")}  # what is compiled
    for path in SOURCE.rglob("*.py"):
        defined |= names_set(ast.parse(path.read_text()))
    tests = {path: private_names(path.read_text(), defined) for path in TESTS.rglob("*.py")}
    found = {path.relative_to(TESTS).as_posix(): names for path, names in tests.items() if names}
    assert len(found) <= MOST_TESTS_WITH_PRIVATE_NAMES, found


def test_private_names_are_found() -> None:
    text = "from mmes.a import _b\nx._c = y._d\nsetattr(x, 'm._e', 1)\ndef _f(): ...\nx._f, x._z"
    assert private_names(text, {"_b", "_c", "_d", "_e", "_f"}) == {"_b", "_c", "_d", "_e"}
