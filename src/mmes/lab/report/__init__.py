"""One self-contained HTML file about a set of runs or about a single run."""

from __future__ import annotations

from pathlib import Path

from mmes.checkpoint.files import write_text
from mmes.lab.report.laboratory import page_of
from mmes.lab.report.page import render
from mmes.lab.report.single import is_single_run, single_page

__all__ = ["write_report"]


def write_report(folder: str | Path, target: str | Path | None = None) -> Path:
    """Write the report of a folder and return the file.

    Parameters
    ----------
    folder : path
        What ``mmes reproduce``, ``mmes bench`` or ``mmes run --out`` wrote.
    target : path, optional
        The HTML file; ``report.html`` in the folder by default.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}")
    page = single_page(folder) if is_single_run(folder) else page_of(folder)
    path = Path(target) if target is not None else folder / "report.html"
    write_text(path, render(page))
    return path
