"""A table as text: for the terminal, CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mmes.checkpoint.files import plain_name, write_text
from mmes.lab.experiments.analysis.statistics import Mark
from mmes.lab.experiments.analysis.tables import Cell, Table, number

LATEX_MARKS = {Mark.BETTER: r"$^\bullet$", Mark.WORSE: r"$^\circ$", Mark.SAME: r"$^\dagger$"}
LATEX_SHADES = {"best": "0.75", "second": "0.90"}


def legend(table: Table, best: str, second: str, of_paper: bool = False) -> list[str]:
    """Return the sentences that explain the shading and the marks, as far as the table has them.

    `best` and `second` say how these values of a row are shown, `of_paper` whether the best
    published values are shown so as well.
    """
    cells = [cell for line in table.lines for cell in line.cells.values()]
    sentences: list[str] = []
    if any(cell.shade or (of_paper and cell.paper_shade) for cell in cells):
        place = "of the row" if table.has_paper else "on the problem"
        sentences.append(f"{best}: best {place}; {second}: second best.")
    if any(cell.mark or cell.paper_mark for cell in cells):
        sentences.append(
            f"{Mark.BETTER.symbol} {table.chosen} is significantly better than this column, "
            f"{Mark.WORSE.symbol} worse, {Mark.SAME.symbol} neither (rank-sum test, level 0.05)."
        )
    return sentences


def our_text(cell: Cell) -> str:
    """Write our number, with the share of successful runs where some failed."""
    text = number(cell.ours)
    if cell.summary and cell.successes is not None and cell.successes < cell.summary.count:
        text += f" ({cell.successes}/{cell.summary.count})"
    return text


def _marked(cell: Cell) -> str:
    return our_text(cell) + (cell.mark.symbol if cell.mark else "")


def paper_text(cell: Cell) -> str:
    """Write the published number with its mark."""
    if cell.not_applicable:
        return "N/A"
    return number(cell.paper) + (cell.paper_mark.symbol if cell.paper_mark else "")


def _grid(table: Table, entry: Callable[[Cell], str]) -> list[list[str]]:
    """Return heading, body and footers as rows of text."""
    rows = [["", *table.columns]]
    rows += [[line.label, *(entry(line.cells[c]) for c in table.columns)] for line in table.lines]
    rows += [[name, *(texts.get(c, "") for c in table.columns)] for name, texts in table.footers]
    return rows


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _heading(table: Table) -> str:
    return f"{table.quantity}; ours / paper" if table.has_paper else table.quantity


def to_text(table: Table) -> str:
    """Write a table for the terminal, with a legend of its marks."""
    sign = {"best": "*", "second": "+", None: ""}

    def entry(cell: Cell) -> str:
        ours = _marked(cell) + sign[cell.shade]
        return f"{ours} / {paper_text(cell)}" if table.has_paper else ours

    rows = _grid(table, entry)
    widths = [max(_width(row[i]) for row in rows) for i in range(len(rows[0]))]

    def join(row: Sequence[str]) -> str:
        first = row[0] + " " * (widths[0] - _width(row[0]))
        rest = [" " * (w - _width(t)) + t for t, w in zip(row[1:], widths[1:], strict=True)]
        return "  ".join([first, *rest]).rstrip()

    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    end = 1 + len(table.lines)
    body = [table.title, _heading(table), rule, join(rows[0]), rule, *map(join, rows[1:end])]
    if table.footers:
        body += [rule, *map(join, rows[end:])]
    return "\n".join([*body, rule, *legend(table, "*", "+"), *table.notes]) + "\n"


def _word(mark: Mark | None) -> str | None:
    """Return what became of the chosen strategy: better, worse or same."""
    return mark.name.lower() if mark else None


def csv_text(lines: Iterable[Iterable[object]]) -> str:
    """Write lines as CSV, the heading first."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def read_rows(path: Path, columns: Iterable[str]) -> list[dict[str, str]]:
    """Read the lines of a CSV file; ValueError if there is none, or a column is missing."""
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        there = reader.fieldnames or []
        missing = [name for name in columns if name not in there]
        if missing:
            raise ValueError(f"{path} has no column {missing[0]!r}; it has {', '.join(there)}")
        return list(reader)


def to_csv(table: Table) -> str:
    """Write a table as CSV, one line per cell, with every number in full."""
    fields = ["problem", "strategy", "value", "lower_quartile", "upper_quartile", "runs"]
    fields += ["successes", "mark", "shade", "keys"]
    if table.has_paper:
        fields += ["published", "published_mark", "published_shade", "ratio"]
    lines: list[list[object]] = [[*fields]]
    for line in table.lines:
        for column in table.columns:
            cell = line.cells[column]
            own = cell.summary
            values = [cell.ours, own and own.lower_quartile, own and own.upper_quartile]
            values += [own and own.count, cell.successes, _word(cell.mark)]
            values += [cell.shade, " ".join(cell.keys)]
            if table.has_paper:
                values += [cell.paper, _word(cell.paper_mark), cell.paper_shade, cell.ratio]
            lines.append([line.label, column, *("" if v is None else v for v in values)])
    return csv_text(lines)


def to_markdown(table: Table) -> str:
    """Write a table as Markdown; the best of a row is bold, the second in italics."""

    def entry(cell: Cell) -> str:
        dress = {"best": "**{}**", "second": "*{}*", None: "{}"}[cell.shade]
        text = dress.format(_marked(cell))
        return f"{text} / {paper_text(cell)}" if table.has_paper else text

    rows = [[t.replace("|", r"\|") for t in row] for row in _grid(table, entry)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "| --- |" + " ---: |" * len(table.columns))
    parts = [f"### {table.title}", _heading(table) + ".", "\n".join(lines)]
    return "\n\n".join([*parts, *legend(table, "Bold", "italics"), *table.notes]) + "\n"


LATEX_SPECIAL = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
}


def escape_latex(text: str) -> str:
    """Return the text with every character that LaTeX would read as a command made harmless."""
    return "".join(LATEX_SPECIAL.get(c, c) for c in text)


def latex_number(value: float | None, mark: Mark | None, shade: str | None) -> str:
    """Return a cell of a table: powers of ten as mathematics, with its mark and its shade."""
    text = number(value)
    mantissa, e, exponent = text.partition("e")
    if e and exponent.lstrip("-").isdigit():
        text = rf"${mantissa}\mathrm{{e}}{{{exponent}}}$"
    else:
        text = escape_latex(text)
    gray = rf"\cellcolor[gray]{{{LATEX_SHADES[shade]}}}" if shade else ""
    return gray + text + (LATEX_MARKS[mark] if mark else "")


def to_latex(table: Table) -> str:
    r"""Write a table as LaTeX with shaded cells: needs ``\usepackage{booktabs,colortbl}``.

    Where published numbers exist every column is a pair, ours and the paper's.
    """
    pairs = table.has_paper
    width = 2 if pairs else 1
    heads = [escape_latex(c) for c in table.columns]
    if pairs:
        heads = [rf"\multicolumn{{2}}{{c}}{{{h}}}" for h in heads]
    lines = [
        r"% \usepackage{booktabs,colortbl}",
        rf"% {escape_latex(table.title)}: {escape_latex(table.quantity)}",
        rf"\begin{{tabular}}{{l{'r' * width * len(table.columns)}}}",
        r"\toprule",
        " & ".join(["", *heads]) + r" \\",
    ]
    if pairs:
        lines.append(" & ".join(["", *(["ours", "paper"] * len(heads))]) + r" \\")
    lines.append(r"\midrule")
    for line in table.lines:
        entries = [escape_latex(line.label)]
        for column in table.columns:
            cell = line.cells[column]
            entries.append(latex_number(cell.ours, cell.mark, cell.shade))
            if pairs and cell.not_applicable:
                entries.append("N/A")
            elif pairs:
                entries.append(latex_number(cell.paper, cell.paper_mark, cell.paper_shade))
        lines.append(" & ".join(entries) + r" \\")
    if table.footers:
        lines.append(r"\midrule")
    for name, texts in table.footers:
        shown = [escape_latex(texts.get(c, "")) for c in table.columns]
        if pairs:
            shown = [rf"\multicolumn{{2}}{{c}}{{{t}}}" for t in shown]
        lines.append(" & ".join([escape_latex(name), *shown]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


WRITERS: dict[str, Callable[[Table], str]] = {
    "txt": to_text,
    "csv": to_csv,
    "md": to_markdown,
    "tex": to_latex,
}


def write_table(table: Table, folder: Path) -> list[Path]:
    """Write a table in every format and return the files."""
    files: list[Path] = []
    for suffix, write in WRITERS.items():
        path = folder / plain_name(f"{table.name}.{suffix}")
        write_text(path, write(table))
        files.append(path)
    return files
