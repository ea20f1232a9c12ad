"""Run experiments one after another: each writes its files at once, then the report shows it."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from worthwhile.errors import BadParameter, Error, did_you_mean
from worthwhile.experiments import EXPERIMENTS
from worthwhile.experiments.base import Experiment, Outcome, Scale
from worthwhile.experiments.records import Record, as_facts, keep
from worthwhile.experiments.report import write_report

Tell = Callable[[str], None]


class Reproduction(NamedTuple):
    """The experiments that ended, the report, and whether Ctrl-C came before the last one."""

    records: list[Record]
    report: Path
    interrupted: bool

    @property
    def failed(self) -> list[Record]:
        """The experiments that ended in an error."""
        return [record for record in self.records if record.failure]


def chosen(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names in this order, all of them if none is named."""
    known = {experiment.name: experiment for experiment in EXPERIMENTS}
    for name in names:
        if name not in known:
            raise BadParameter(f"no experiment {name!r}; {did_you_mean(name, known)} (see worthwhile reproduce --list)")
    return [known[name] for name in dict.fromkeys(names or known)]


def reproduce(experiments: Sequence[Experiment], scale: Scale, folder: Path, tell: Tell) -> Reproduction:
    """Run the experiments, write their files into a folder each, and the report of all that are there."""
    check(scale)
    write_report(folder)  # finds out now whether it can be written
    records: list[Record] = []
    interrupted = False
    try:
        for number, experiment in enumerate(experiments, 1):
            tell(f"[{number}/{len(experiments)}] {experiment.name}: {experiment.title}")
            started = time.monotonic()
            records.append(run_one(experiment, scale, folder / experiment.name))
            write_report(folder)
            tell(verdicts(records[-1], time.monotonic() - started))
    except KeyboardInterrupt:
        interrupted = True
    report = write_report(folder)
    return Reproduction(records, report, interrupted)


def check(scale: Scale) -> None:
    """Refuse what no experiment could use."""
    if scale.seed < 0:
        raise BadParameter(f"seed = {scale.seed}; it must be a whole number, at least 0")
    if scale.tables is not None and not scale.tables.is_dir():
        raise BadParameter(f"no folder {str(scale.tables)!r}; --tables takes a folder of recorded tables")


def run_one(experiment: Experiment, scale: Scale, folder: Path) -> Record:
    """Run an experiment and keep its outcome; one that fails is put on record and stops no other."""
    try:
        return keep(experiment, scale, experiment.run(scale), folder)
    except Error as error:
        failure = str(error)
    except Exception as error:  # a slip in one experiment must not cost the others their results
        traceback.print_exc()
        failure = f"{type(error).__name__}: {error}"
    return keep(experiment, scale, Outcome("", {}, {}), folder, failure)


def verdicts(record: Record, seconds: float) -> str:
    """An experiment's verdicts, in lines for a terminal."""
    lines = [f"FAILED  {record.failure}"] if record.failure else []
    for claim in record.claims:
        lines += [f"{claim.verdict.upper()}  {claim.claim}", f"    {claim.evidence}"]
    return "\n".join(f"    {line}" for line in [*lines, f"{seconds:.0f} s"])


def listing(experiments: Sequence[Experiment]) -> str:
    """Names and titles, for a terminal."""
    longest = max(len(experiment.name) for experiment in experiments)
    return "\n".join(f"{experiment.name:{longest}}  {experiment.title}" for experiment in experiments)


def facts(done: Reproduction) -> dict[str, Any]:
    """All records, ready for JSON."""
    records = [as_facts(record) for record in done.records]
    return {"report": str(done.report), "interrupted": done.interrupted, "experiments": records}


def summary(done: Reproduction) -> str:
    """How many claims got which verdict, what failed, and where to read on."""
    counted = Counter(claim.verdict for record in done.records for claim in record.claims)
    verdicts = [f"{count} {verdict}" for verdict, count in counted.most_common()]
    failed = [f"failed: {', '.join(record.name for record in done.failed)}"] if done.failed else []
    return "\n".join([*([f"claims: {', '.join(verdicts)}"] if verdicts else []), *failed, f"report: {done.report}"])
