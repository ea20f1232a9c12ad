"""Reproducing the paper: same seed, same bytes; a report that has everything and needs nothing; no result is lost."""

from __future__ import annotations

import base64
import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from small_experiments import DRAWN, SEED, cut, run_everything, write_two_tables

from waiting import NET
from worthwhile import solve, two_kinds
from worthwhile.cli.main import main
from worthwhile.errors import BadParameter
from worthwhile.experiments import EXPERIMENTS, Claim, Experiment, Outcome, Scale
from worthwhile.experiments.base import DEPENDS, NOT_REPRODUCED, OURS, REPRODUCED
from worthwhile.experiments.records import Record, read_record, read_records, write_csv
from worthwhile.experiments.report import TITLE, write_report
from worthwhile.experiments.reproduce import chosen, reproduce

ROOT = Path(__file__).parents[2]
NAMES = [experiment.name for experiment in EXPERIMENTS]
CHEAP = ("table-1", "figure-4a")
NO_CLOSING_TAG = {"meta", "img", "br"}


@pytest.fixture(scope="module")
def small_figures() -> Iterator[None]:
    """Few tasks and runs."""
    with cut(DRAWN):
        yield


@pytest.fixture(scope="module")
def done(small_figures: None, two_tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two experiments in it, made on the command line."""
    folder = tmp_path_factory.mktemp("done")
    assert main(["reproduce", *CHEAP, "--quick", "--out", str(folder), "--tables", str(two_tables)]) == 0
    return folder


class Page(HTMLParser):
    """A page taken apart; every tag must be closed in order."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.images: list[str] = []
        self.links: list[str] = []
        self.others: list[str] = []  # whatever else could load something
        self.anchors: set[str] = set()
        self.words = ""
        self.feed(path.read_text(encoding="utf-8"))
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in NO_CLOSING_TAG:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.anchors.add(value or "")
            elif name in ("src", "href"):
                (self.images if tag == "img" else self.links if tag == "a" else self.others).append(value or "")
            elif name == "style":
                assert re.fullmatch(r"--inches:[\d.]+", value or "")
            elif name in ("srcset", "action", "data", "poster", "background"):
                self.others.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def embedded(page: Page) -> list[bytes]:
    """The figures inside a page."""
    return [base64.b64decode(image.partition(";base64,")[2]) for image in page.images]


def csv_bytes(folder: Path) -> dict[str, bytes]:
    """All data below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.csv"))}


def check_report(folder: Path) -> list[Record]:
    """The report has every claim and every figure of the records, and refers to nothing that is not there."""
    records, page = read_records(folder, NAMES), Page(folder / "report.html")
    for record in records:
        assert record.name in page.anchors
        for text in (record.title, *record.words.split("\n\n"), *(part for claim in record.claims for part in claim)):
            raised = re.sub(r"\^\(([^()]*)\)|\^([−-]?[\d¼½¾]+)", r"\1\2", text)
            assert raised in page.words, f"{record.name}: {text}"
    drawn = [(record.name, name) for record in records for name in record.figures]
    inside = embedded(page)
    assert len(inside) == len(drawn)
    for data, (name, figure) in zip(inside, drawn, strict=True):
        assert data in ((folder / name / f"{figure}.svg").read_bytes(), (folder / name / f"{figure}.png").read_bytes())
    assert all(image.startswith("data:image/") for image in page.images)
    assert page.others == []
    assert not page.tags & {"script", "link", "iframe", "object", "embed", "base", "form", "audio", "video"}
    assert "url(" not in page.words
    assert "@import" not in page.words
    for link in page.links:
        assert link[1:] in page.anchors if link.startswith("#") else (folder / link).is_file()
    return records


@pytest.mark.slow
def test_every_file_is_there(done: Path) -> None:
    for name in CHEAP:
        record = read_record(done / name)
        assert (f"{name}.csv" in record.tables, name in record.figures) == (True, True)
        drawn = {f"{figure}{ending}" for figure in record.figures for ending in (".png", ".svg")}
        assert {path.name for path in (done / name).iterdir()} == {"outcome.json", *record.tables, *drawn}


@pytest.mark.slow
def test_the_report_has_everything_and_needs_nothing(done: Path) -> None:
    records = check_report(done)
    assert [record.name for record in records] == list(CHEAP)
    words = Page(done / "report.html").words
    assert TITLE in words
    assert "Not run: " in words
    assert all(name in words for name in NAMES)
    assert "A quick look (all experiments)" in words
    assert "worthwhile reproduce table-1 --seed 0 --quick" in words


@pytest.mark.slow
def test_another_seed_gives_other_numbers(done: Path, tmp_path: Path) -> None:
    first = csv_bytes(done)
    assert main(["reproduce", *CHEAP, "--quick", "--out", str(tmp_path), "--seed", "1"]) == 0
    other = csv_bytes(tmp_path)
    assert other.keys() == first.keys()
    assert {name for name in first if other[name] != first[name]} == {"figure-4a/figure-4a.csv"}  # table 1 is exact


@pytest.mark.slow
def test_the_same_command_makes_the_same_files(done: Path, two_tables: Path) -> None:
    before = {path: path.read_bytes() for path in done.rglob("*.*")}
    assert main(["reproduce", *CHEAP, "--quick", "--out", str(done), "--tables", str(two_tables)]) == 0
    assert {path: path.read_bytes() for path in done.rglob("*.*")} == before


@pytest.mark.slow
def test_every_experiment_is_on_the_page_with_its_tables(everything: Path) -> None:
    records = check_report(everything)
    assert [record.name for record in records] == NAMES
    assert "Not run" not in Page(everything / "report.html").words
    assert {f"{record.name}/{name}" for record in records for name in record.tables} == set(csv_bytes(everything))


EXACT = {"table-1", "recorded-tables/headroom"}


@pytest.mark.long
def test_everything_twice_gives_the_same_bytes_and_with_another_seed_others(everything: Path, tmp_path: Path) -> None:
    first, tables = csv_bytes(everything), write_two_tables(tmp_path / "tables")
    run_everything(tmp_path / "again", tables)
    assert csv_bytes(tmp_path / "again") == first
    run_everything(tmp_path / "other", tables, seed=SEED + 1)
    other = csv_bytes(tmp_path / "other")
    same = [name for name in first if other[name] == first[name] and not name.startswith(tuple(EXACT))]
    assert same == []


@pytest.mark.slow
def test_every_verdict_comes_with_tasks_runs_and_errors(everything: Path) -> None:
    """But for table 1, in which nothing is drawn."""
    claims = [claim for record in read_records(everything, NAMES)[1:] for claim in record.claims]
    theirs = [claim for claim in claims if claim.verdict != OURS]
    assert len(theirs) == 28
    for claim in theirs:
        for word in (r"T = \d|\d tasks|T from \d|windows of tasks", r"\d runs", r"\d ± \d|standard errors"):
            assert re.search(word, claim.evidence), f"{claim.claim}: {claim.evidence}"


@pytest.mark.slow
def test_every_number_in_the_report_can_be_read(everything: Path) -> None:
    words = Page(everything / "report.html").words
    assert not re.findall(r"\b(?:nan|inf|None)\b", words)
    assert not re.findall(r"\d,\d{3} %|\d{4,} %", words)


def test_csv_numbers_read_back_to_the_bit(tmp_path: Path) -> None:
    numbers = [0.1 + 0.2, 1e-300, float(np.nextafter(1.0, 2.0)), -0.0]
    write_csv({"a": numbers, "b": np.array(numbers), "c": [1, np.int64(2), "x, y", None]}, tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["a"]).hex() for row in rows] == [number.hex() for number in numbers]
    assert [row["b"] for row in rows] == [row["a"] for row in rows]
    assert [row["c"] for row in rows] == ["1", "2", "x, y", ""]


@pytest.mark.slow
def test_figures_say_where_they_come_from(done: Path) -> None:
    with Image.open(done / "figure-4a/figure-4a.png") as image:
        about = json.loads(image.info["Description"])
    assert (about["experiment"], about["seed"], about["quick"]) == ("figure-4a", 0, True)
    assert about == read_record(done / "figure-4a").provenance
    text = " ".join(ElementTree.parse(done / "figure-4a/figure-4a.svg").getroot().itertext())
    assert '"experiment": "figure-4a"' in text


@pytest.mark.slow
def test_one_experiment_is_updated_alone_and_the_report_rebuilt_from_what_is_there(
    done: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = csv_bytes(done)
    assert main(["reproduce", "figure-4b", "--quick", "--seed", "7", "--out", str(done)]) == 0
    assert "figure-4b" in capsys.readouterr().out
    after = csv_bytes(done)
    assert after.keys() - before.keys() == {"figure-4b/figure-4b.csv"}
    assert {name: after[name] for name in before} == before
    assert [record.name for record in check_report(done)] == ["table-1", "figure-4a", "figure-4b"]
    assert "seed 0, 7" in Page(done / "report.html").words
    for path in (done / "figure-4b").iterdir():
        path.unlink()
    (done / "report.html").unlink()
    write_report(done)
    assert [record.name for record in check_report(done)] == list(CHEAP)


@pytest.mark.slow
def test_the_verdicts_are_printed_and_counted(
    small_figures: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "figure-4a", "--quick", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    claims = read_record(tmp_path / "figure-4a").claims
    assert len(claims) == 2
    assert lines[0] == "[1/1] figure-4a: Figure 4a: two kinds, p = 0.8"
    for number, claim in enumerate(claims):
        assert lines[1 + 2 * number].strip() == f"{claim.verdict.upper()}  {claim.claim}"
        assert lines[2 + 2 * number].strip() == claim.evidence
    counts = Counter(claim.verdict for claim in claims)
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    assert lines[-2:] == [f"claims: {said}", f"report: {tmp_path / 'report.html'}"]
    assert f"{100 * (1 - 2.5 / solve(two_kinds(0.8)).ratio):.2g} %" in read_record(tmp_path / "figure-4a").words


@pytest.mark.slow
def test_json_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "table-1", "--quick", "--out", str(tmp_path), "--json"]) == 0
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["report"] == str(tmp_path / "report.html")
    assert document["experiments"] == [json.loads((tmp_path / "table-1/outcome.json").read_text(encoding="utf-8"))]
    assert "table-1" in shown.err


def test_the_list_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    assert all(line.endswith(experiment.title) for line, experiment in zip(lines, EXPERIMENTS, strict=True))
    assert main(["reproduce", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["experiments"]
    assert listed == [{"name": experiment.name, "title": experiment.title} for experiment in EXPERIMENTS]


def test_names_are_distinct_and_fit_for_folders() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert all(name == name.lower() and name.replace("-", "").isalnum() for name in NAMES)


def test_experiments_run_in_the_order_asked_for_and_once() -> None:
    assert [experiment.name for experiment in chosen(["figure-5", "figure-4a", "figure-5"])] == [
        "figure-5",
        "figure-4a",
    ]
    assert chosen([]) == list(EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["figure-4x"], "no experiment 'figure-4x'; did you mean 'figure-4"),
        (["nothing of the kind"], "known: "),
        (["figure-5", "--seed", "-1"], "seed = -1"),
        (["figure-5", "--tables", "no/such/folder"], "no folder 'no/such/folder'"),
        (["figure-5", "--out", "occupied/below"], "cannot write occupied/below"),
        (["figure-5", "--out", "occupied"], "cannot write occupied"),
    ],
)
def test_what_cannot_work_is_refused_before_any_work(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "occupied").write_text("a file, not a folder")
    assert main(["reproduce", *arguments]) == 2
    shown = capsys.readouterr()
    assert complaint in shown.err
    assert len(shown.err.splitlines()) == 1
    assert shown.out == ""
    assert not list(tmp_path.rglob("outcome.json"))


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["reproduce", "figure-5", "--out", str(tmp_path / "out")]) == 2
    assert "pip install 'worthwhile[plot]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def broken(scale: Scale) -> Outcome:
    raise ZeroDivisionError(f"seed {scale.seed}")


def small(scale: Scale) -> Outcome:
    verdicts = [REPRODUCED, NOT_REPRODUCED, DEPENDS, OURS, "another"]
    claims = [Claim(f"claim <{number}> & more", verdict, "1 < 2") for number, verdict in enumerate(verdicts)]
    long = {"tasks": [1, 10] * 30, "value": np.arange(60.0)}
    return Outcome("First.\n\nSecond & <last>.", {"short": {"x": [scale.seed], "y": [0.25]}, "long": long}, {}, claims)


def test_a_failing_experiment_costs_the_others_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiments = [Experiment("broken", "Broken", broken), Experiment("small", "Small", small)]
    lines: list[str] = []
    done = reproduce(experiments, Scale(seed=3), tmp_path, lines.append)
    assert [record.name for record in done.failed] == ["broken"]
    assert "ZeroDivisionError: seed 3" in capsys.readouterr().err  # with its traceback
    assert "FAILED  ZeroDivisionError: seed 3" in lines[1]
    assert [record.name for record in check_report(tmp_path)] == ["broken", "small"]
    words = Page(tmp_path / "report.html").words
    assert "Failed: broken." in words
    assert "This experiment failed: ZeroDivisionError: seed 3" in words


def test_a_failure_replaces_what_an_earlier_run_found(tmp_path: Path) -> None:
    reproduce([Experiment("one", "One", small)], Scale(), tmp_path, print)
    assert (tmp_path / "one/short.csv").is_file()
    reproduce([Experiment("one", "One", broken)], Scale(), tmp_path, print)
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["outcome.json"]


def test_files_of_an_earlier_run_do_not_linger(tmp_path: Path) -> None:
    reproduce([Experiment("one", "One", small)], Scale(), tmp_path, print)
    (tmp_path / "one/mine.txt").write_text("not ours to remove")
    reproduce([Experiment("one", "One", lambda scale: Outcome("", {}, {}))], Scale(), tmp_path, print)
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["mine.txt", "outcome.json"]


def test_every_verdict_has_its_colour_and_every_text_is_escaped(tmp_path: Path) -> None:
    reproduce([Experiment("small", "Small & <odd>", small)], Scale(), tmp_path, print)
    check_report(tmp_path)
    source = (tmp_path / "report.html").read_text(encoding="utf-8")
    for look in ("good", "bad", "open", "ours", "none"):
        assert f'class="chip {look}"' in source
    assert "60 rows, 30 of them here" in source  # a long table is shown at its last task


def test_long_evidence_is_whole_in_its_section_and_short_in_the_table(tmp_path: Path) -> None:
    evidence = "; ".join(f"policy {number} loses {number} %" for number in range(40))
    outcome = Outcome("", {}, {}, [Claim("it works", REPRODUCED, evidence), Claim("it runs", OURS, "word " * 80)])
    reproduce([Experiment("one", "One", lambda scale: outcome)], Scale(), tmp_path, print)
    check_report(tmp_path)
    words = Page(tmp_path / "report.html").words
    assert words.count("policy 0 loses 0 %") == 2
    assert words.count("policy 39 loses 39 %") == 1
    assert " % …" in words
    assert "word …" in words


def test_powers_are_raised(tmp_path: Path) -> None:
    outcome = Outcome("As T^(0.5 ± 0.1), below T^¾ and 10^−3, not a^b.", {}, {})
    reproduce([Experiment("one", "One", lambda scale: outcome)], Scale(), tmp_path, print)
    source = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "As T<sup>0.5 ± 0.1</sup>, below T<sup>¾</sup> and 10<sup>−3</sup>, not a^b." in source


@pytest.mark.slow
def test_a_page_survives_files_that_are_gone(done: Path, tmp_path: Path) -> None:
    reproduce([Experiment("small", "Small", small)], Scale(), tmp_path, print)
    (tmp_path / "small/short.csv").unlink()
    write_report(tmp_path)
    assert "The file short.csv is gone" in Page(tmp_path / "report.html").words


def test_a_record_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/outcome.json").write_text('{"name": "odd"}')
    with pytest.raises(BadParameter, match=r"odd/outcome\.json is no record of an experiment"):
        write_report(tmp_path)


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    ignored = "import runpy, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "  # by shells
    code = ignored + "sys.argv[0] = 'worthwhile'; runpy.run_module('worthwhile', run_name='__main__')"
    started = [sys.executable, "-c", code, "reproduce", "table-1", "figure-4c", "--out", str(tmp_path)]
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            seen = b""
            while b"[2/2]" not in seen:
                read = os.read(process.stdout.fileno(), 4096)
                assert read, seen.decode()
                seen += read
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=NET)
        finally:
            process.kill()
    assert process.returncode == 130
    assert f"interrupted: 1 of 2 experiments are finished and kept in {tmp_path}" in said.decode()
    assert "Traceback" not in said.decode()
    assert [record.name for record in check_report(tmp_path)] == ["table-1"]
    assert "figure-4c" in Page(tmp_path / "report.html").words  # as one that was not run


def test_every_experiment_is_explained() -> None:
    text = (ROOT / "docs/reproduce.md").read_text(encoding="utf-8")
    missing = [name for name in NAMES if f"`{name}`" not in text]
    assert not missing
