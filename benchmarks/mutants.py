"""Mutation testing of the core: change it in one place at a time, and see whether a test notices.

`python benchmarks/mutants.py` takes an hour or so on one core and needs `pip install cosmic-ray`; `--sample 100` tries
100 mutants, drawn at random. It works on a copy of the tree. Mutants that may survive stand in
mutants_that_survive.toml, each with a reason; any other survivor makes this fail.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
COPIED = ("src", "tests", "pyproject.toml")
CONFIG, SURVIVORS = (ROOT / "benchmarks" / f"{name}.toml" for name in ("mutants", "mutants_that_survive"))
WAITING = "select job_id from mutation_specs where job_id not in (select job_id from work_results) order by job_id"
TRIED = (
    "select module_path, test_outcome, diff from work_results join mutation_specs using (job_id) "
    "where worker_outcome <> 'SKIPPED' order by module_path, start_pos_row, start_pos_col"
)
LEAVE_OUT = "insert into work_results (job_id, worker_outcome, output, diff) values (?, 'SKIPPED', 'not drawn', '')"


class Mutant(NamedTuple):
    """One line of the core, changed."""

    file: str
    line: str
    changed: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="try so many mutants, drawn at random")
    parser.add_argument("--only", default="", help="only files whose path contains this")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="worthwhile-mutants-") as folder:
        copy = Path(folder)
        session = prepare(copy)
        draw(session, given.only, given.sample)
        run(copy, "cosmic-ray", "exec", "mutants.toml", session.name)
        return report(session)


def prepare(copy: Path) -> Path:
    """A copy of the tree with every mutant planned, those of the wrong sort left out."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, copy / name)
    config = CONFIG.read_text(encoding="utf-8").replace("{python}", sys.executable)
    (copy / "mutants.toml").write_text(config, encoding="utf-8")
    run(copy, "cosmic-ray", "init", "mutants.toml", "mutants.sqlite")
    run(copy, "cr-filter-operators", "mutants.sqlite", "mutants.toml")
    return copy / "mutants.sqlite"


def run(copy: Path, command: str, *arguments: str) -> None:
    paths = os.pathsep.join([str(copy / "src"), str(copy / "tests")])
    quick = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    program = shutil.which(command, path=sysconfig.get_path("scripts")) or shutil.which(command)
    if program is None:
        sys.exit(f"{command} is not installed: pip install cosmic-ray")
    subprocess.run([program, *arguments], cwd=copy, env=os.environ | quick, check=True)


def draw(session: Path, only: str, sample: int | None) -> None:
    """Leave out mutants of other files, and all but a sample."""
    with sqlite3.connect(session) as database:
        files = dict(database.execute("select job_id, module_path from mutation_specs"))
        waiting = [job for (job,) in database.execute(WAITING)]
        wanted = [job for job in waiting if only in files[job]]
        kept = set(wanted if sample is None else random.sample(wanted, min(sample, len(wanted))))
        database.executemany(LEAVE_OUT, [(job,) for job in waiting if job not in kept])


def tried(session: Path) -> Iterator[tuple[Mutant, bool]]:
    """Every mutant, and whether it was noticed."""
    with sqlite3.connect(session) as database:
        for file, outcome, diff in database.execute(TRIED):
            lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
            before, after = (" ".join(line[1:].strip() for line in lines if line[:1] == sign) for sign in "-+")
            yield Mutant(file.removeprefix("src/worthwhile/"), before, after), outcome != "SURVIVED"


def report(session: Path) -> int:
    """The score by file, and the survivors that nobody has given a reason for."""
    allowed = {Mutant(entry["file"], entry["line"], entry["changed"]): entry["why"] for entry in entries()}
    mutants, killed, accepted, unexplained = Counter[str](), Counter[str](), Counter[str](), []
    for mutant, noticed in tried(session):
        mutants[mutant.file] += 1
        killed[mutant.file] += noticed
        if not noticed and mutant in allowed:
            accepted[mutant.file] += 1
        elif not noticed:
            unexplained.append(mutant)
    print(f"{'file':32} {'mutants':>8} {'noticed':>8} {'allowed':>8}")
    for file in mutants:
        print(f"{file:32} {mutants[file]:8} {killed[file]:8} {accepted[file]:8}")
    total = mutants.total(), killed.total(), accepted.total()
    print(f"{'all':32} {total[0]:8} {total[1]:8} {total[2]:8}   {100 * total[1] / max(1, total[0]):.1f} % noticed")
    for mutant in unexplained:
        print(f"\n[[survivor]]\nfile = '{mutant.file}'\nline = '{mutant.line}'\nchanged = '{mutant.changed}'\nwhy = ''")
    return 1 if unexplained else 0


def entries() -> list[dict[str, str]]:
    found: list[dict[str, str]] = tomllib.loads(SURVIVORS.read_text(encoding="utf-8")).get("survivor", [])
    return found


if __name__ == "__main__":
    sys.exit(main())
