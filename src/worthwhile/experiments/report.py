"""The report: one HTML page with the verdicts up front and every figure inside, made from the records in a folder."""

from __future__ import annotations

import base64
import csv
import math
import re
import shlex
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from worthwhile.experiments import EXPERIMENTS
from worthwhile.experiments.base import DEPENDS, NOT_REPRODUCED, OURS, REPRODUCED, Claim
from worthwhile.experiments.records import Record, read_records
from worthwhile.plots import DOTS_PER_INCH
from worthwhile.tables import as_number, replace_file

NAME = "report.html"
TEMPLATE = Path(__file__).with_name("report_template.html")
TITLE = "Learning to Schedule Online Tasks with Bandit Feedback: reproduced and tested further"
QUESTION = (
    "Tasks of several kinds arrive. Each is done by one of its options, whose reward and cost are seen afterwards, and "
    "nothing of the other options. Which choices make total reward / total cost largest? The paper (Xu, Wang, Guo, "
    "Liu, Shao, AAMAS 2024) answers with DOL-RM. This page holds what it says against what a run from scratch finds."
)
READING = (
    "To read it: θ* is the best possible ratio, when everything is known. What a policy loses is the share of θ* that "
    "its ratio lacks, 1 − ratio/θ*. dol-rm is the paper's algorithm with the step of its theorem, dol-rm-anytime "
    "with the step of its figures; oracle knows all means; ratio-imed is worthwhile's default, which is told nothing. "
    "After ± stands the standard error over runs."
)
LOOKS = {REPRODUCED: ("good", "✓"), NOT_REPRODUCED: ("bad", "✗"), DEPENDS: ("open", "≈"), OURS: ("ours", "+")}
OTHER = ("none", "–")
MOST_ROWS = 40  # a longer table is shown at its last tasks only, or not at all
MOST_LETTERS = 180  # of evidence in the table up front
LARGEST_SVG = 600_000  # bytes; beyond, the PNG is smaller
WIDE = 5.6  # inches; on a phone, a wider figure is moved sideways rather than shrunk until nobody can read it


def write_report(folder: Path) -> Path:
    """Write the report of all experiments that have a record in the folder."""
    page = html(read_records(folder, [experiment.name for experiment in EXPERIMENTS]), folder)
    replace_file(folder / NAME, lambda new: new.write_text(page, encoding="utf-8"))
    return folder / NAME


def html(records: Sequence[Record], folder: Path) -> str:
    """The whole page."""
    parts = [
        heading(records),
        verdict_table("What the paper says", records, theirs=True),
        verdict_table("Beyond the paper", records, theirs=False),
        contents(records),
        *(section(record, folder / record.name) for record in records),
    ]
    template, body = TEMPLATE.read_text(encoding="utf-8"), "\n".join(part for part in parts if part)
    return template.replace("{title}", escape(TITLE)).replace("{body}", body)


def heading(records: Sequence[Record]) -> str:
    """What was run, and how many claims got which verdict."""
    counted = Counter(claim.verdict for record in records for claim in record.claims)
    chips = " ".join(f"<span>{counted[verdict]} × {chip(verdict)}</span>" for verdict in sorted(counted, key=rank))
    return "\n".join(
        [
            f"<header><h1>{escape(TITLE)}</h1>",
            f"<p>{escape(QUESTION)}</p>",
            f'<p class="counts">{chips}</p>' if chips else "<p>No experiment has been run yet.</p>",
            *warnings(records),
            f'<p class="facts">{escape(READING)}</p>',
            facts(records),
            "</header>",
        ]
    )


def rank(verdict: str) -> int:
    """Where a verdict stands among the others."""
    return [*LOOKS, verdict].index(verdict)


def warnings(records: Sequence[Record]) -> Iterable[str]:
    """What a reader should know before believing the page."""
    quick = [record.name for record in records if record.provenance["quick"]]
    if quick:
        which = "all experiments" if len(quick) == len(records) else ", ".join(quick)
        yield note(f"A quick look ({which}): fewer tasks and runs than the full reproduction, so verdicts may differ.")
    if failed := [record.name for record in records if record.failure]:
        yield note(f"Failed: {', '.join(failed)}.")
    there = {record.name for record in records}
    if missing := [experiment.name for experiment in EXPERIMENTS if experiment.name not in there]:
        yield note(f"Not run: {', '.join(missing)}.")


def note(text: str) -> str:
    """A sentence that stands out."""
    return f'<p class="note">{escape(text)}</p>'


def facts(records: Sequence[Record]) -> str:
    """Version, seed and platform; more than one value where experiments were run at different times."""
    names = {"worthwhile": "worthwhile", "seed": "seed", "python": "Python", "numpy": "NumPy", "platform": "platform"}
    values = {shown: {str(record.provenance[name]): None for record in records} for name, shown in names.items()}
    text = " · ".join(f"{name} {', '.join(several)}" for name, several in values.items() if several)
    return f'<p class="facts">{escape(text)}</p>'


def verdict_table(title: str, records: Sequence[Record], theirs: bool) -> str:
    """One row per claim: what is claimed, what this run says of it, and the numbers."""
    rows = [
        f'<tr><td><a href="#{escape(record.name)}">{typeset(claim.claim)}</a></td>'
        + (f"<td>{chip(claim.verdict)}</td>" if theirs else "")
        + f"<td>{typeset(shortened(claim.evidence))}</td></tr>"
        for record in records
        for claim in record.claims
        if (claim.verdict != OURS) == theirs
    ]
    columns = "<th>claim</th><th>verdict</th>" if theirs else "<th>question</th>"
    head = f'<h2>{title}</h2>\n<table class="verdicts"><tr>{columns}<th>evidence</th></tr>'
    return "\n".join([head, *rows, "</table>"]) if rows else ""


def shortened(evidence: str) -> str:
    """As much of it as fits into a table; the whole is in the section."""
    if len(evidence) <= MOST_LETTERS:
        return evidence
    head = evidence[:MOST_LETTERS]
    return f"{head.rpartition('; ')[0] or head.rpartition(' ')[0]} …"


def chip(verdict: str) -> str:
    """A verdict as a word with a sign and a colour."""
    look, sign = LOOKS.get(verdict, OTHER)
    return f'<span class="chip {look}">{sign} {escape(verdict)}</span>'


def contents(records: Sequence[Record]) -> str:
    """Links to all sections."""
    links = [f'<li><a href="#{escape(record.name)}">{escape(record.title)}</a></li>' for record in records]
    return f"<nav><h2>Results</h2><ul>{''.join(links)}</ul></nav>" if links else ""


def section(record: Record, folder: Path) -> str:
    """One experiment: words, figures, verdicts, data, and how to run it again."""
    words = [f"<p>{typeset(part)}</p>" for part in record.words.split("\n\n") if part]
    failure = [note(f"This experiment failed: {record.failure}")] if record.failure else []
    shown = [figure(record, name, folder) for name in record.figures]
    claims = [claim_line(claim) for claim in record.claims]
    tables = [table(folder / name) for name in record.tables]
    again = f'<p class="facts">Run it alone: <code>{escape(command(record))}</code></p>'
    parts = [*failure, *words, *shown, f"<ul class='claims'>{''.join(claims)}</ul>" if claims else "", *tables, again]
    return f'<section id="{escape(record.name)}"><h2>{escape(record.title)}</h2>\n' + "\n".join(parts) + "</section>"


def claim_line(claim: Claim) -> str:
    """A claim with its verdict and all of its evidence."""
    return f"<li>{chip(claim.verdict)} <b>{typeset(claim.claim)}</b><br>{typeset(claim.evidence)}</li>"


def typeset(text: str) -> str:
    """Text that is safe in a page, its powers raised: T^(¾), T^½, 10^-3."""
    return re.sub(r"\^\(([^()]*)\)|\^([−-]?[\d¼½¾]+)", r"<sup>\1\2</sup>", escape(text))


def command(record: Record) -> str:
    """What makes this section again."""
    about = record.provenance
    tables = f" --tables {shlex.quote(about['tables'])}" if about["tables"] else ""
    return f"worthwhile reproduce {record.name} --seed {about['seed']}{' --quick' * about['quick']}{tables}"


def figure(record: Record, name: str, folder: Path) -> str:
    """A figure, inside the page."""
    svg, png = folder / f"{name}.svg", folder / f"{name}.png"
    if not (svg.is_file() and png.is_file()):
        return note(f"The files of figure {name} are gone; run the experiment again.")
    inside, kind = (svg, "svg+xml") if svg.stat().st_size <= LARGEST_SVG else (png, "png")
    data = base64.b64encode(inside.read_bytes()).decode()
    inches = struct.unpack(">I", png.read_bytes()[16:20])[0] / DOTS_PER_INCH  # where every PNG has its width
    look = f'class="{"wide" if inches > WIDE else "narrow"}" style="--inches:{inches:.2f}"'
    image = f'<img alt="{escape(record.title)}: {escape(name)}" src="data:image/{kind};base64,{data}">'
    links = " · ".join(link(file, file.suffix[1:].upper()) for file in (png, svg))
    caption = f"<figcaption>{escape(name)}: {links}</figcaption>"
    return f'<figure {look}><div class="card">{image}</div>{caption}</figure>'


def link(file: Path, text: str) -> str:
    """A link to a file of an experiment, from the report beside its folder."""
    return f'<a href="{escape(file.parent.name)}/{escape(file.name)}">{escape(text)}</a>'


def table(path: Path) -> str:
    """A link to a CSV file and, to unfold, its rows or those at the last task."""
    if not path.is_file():
        return note(f"The file {path.name} is gone; run the experiment again.")
    with open(path, newline="", encoding="utf-8") as file:
        head, *rows = list(csv.reader(file))
    kept = shown_rows(head, rows)
    count = f"{len(rows):,} {'row' if len(rows) == 1 else 'rows'}"
    size = count if len(kept) == len(rows) else f"{count}, {len(kept)} of them here"
    if not kept:
        return f'<p class="facts">Data: {link(path, path.name)} ({count})</p>'
    titles = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in head)
    body = "\n".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in kept)
    inside = f'<div class="scroll"><table class="data"><tr>{titles}</tr>\n{body}</table></div>'
    whole = f'<p class="facts">In full: {link(path, path.name)}</p>'
    return f"<details><summary>Data: {escape(path.name)} ({size})</summary>{inside}{whole}</details>"


def shown_rows(head: Sequence[str], rows: Sequence[list[str]]) -> Sequence[list[str]]:
    """All rows of a small table; of a larger one those at the last task, if they are few."""
    if len(rows) <= MOST_ROWS:
        return rows
    tasks = [as_number(row[head.index("tasks")]) for row in rows] if "tasks" in head else []
    kept = [row for row, task in zip(rows, tasks, strict=False) if task == max(tasks)]
    return kept if len(kept) <= MOST_ROWS else []


def cell(value: str) -> str:
    """A value in a table; numbers to five digits."""
    number = as_number(value)
    if math.isnan(number):
        return f"<td>{escape(value)}</td>"
    text = f"{number:,.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:.5g}"
    return f'<td class="number">{text}</td>'
