"""Mutation testing of the core: change it in one place at a time, and see whether a test notices.

`python benchmarks/mutants.py` needs `pip install cosmic-ray`, which makes the changes; `--sample 100` tries 100 of
them, drawn at random, `--only imed` those of one file. No file is touched: each changed module is imported from memory,
in a process of its own. Changes that may go unnoticed stand in mutants_that_survive.toml, each with a reason; any
other makes this fail.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.machinery
import os
import random
import re
import resource
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

import numpy  # noqa: F401  here once, not in every process
import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "worthwhile"
SURVIVORS = Path(__file__).with_name("mutants_that_survive.toml")
FILES = ("policies/*.py", "learning.py", "decision.py", "optimum.py", "live/fold.py")
TESTS = (
    "tests/test_core_formulas.py",
    "tests/policies/test_policy_formulas.py",
    "tests/policies/test_registry.py",
    "tests/live/test_fold.py",
    "tests/policies/test_default_formulas.py",
    "tests/policies/test_default_failures.py",
    "tests/policies/test_golden.py",
    "tests/policies/test_evidence.py",
)
INTERPRETED = ("-k", "not machine_code", "--noconftest", "-p", "no:cacheprovider", "-x", "-q")
ENTRY = "[[survivor]]\nfile = '{}'\nline = '{}'\nchanged = '{}'\nwhy = ''\n"
PATIENCE = 20  # seconds of CPU time: a loop without end is noticed, too

# + for −, × for ÷, < for ≤ and for ≥, numbers one up and one down, not, and for or, loops that do nothing. Its other
# replacements (+ by %, by <<, by | …) are noticed by whatever notices these.
CHANGES = re.compile(
    r"core/("
    r"ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|Pow_Mul|FloorDiv_Mul|Mod_Mul)|"
    r"ReplaceComparisonOperator_(Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is|Lt_LtE|Lt_GtE|LtE_Lt|LtE_Gt|Gt_GtE|Gt_LtE|GtE_Gt|GtE_Lt)|"
    r"ReplaceUnaryOperator_Delete_\w+|NumberReplacer|AddNot|Replace(True|False|And|Or|Break|Continue)With\w+|"
    r"ZeroIterationForLoop|ExceptionReplacer|RemoveDecorator)"
)


class Mutant(NamedTuple):
    """One line of the core, changed."""

    file: str
    line: str
    changed: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="try so many, drawn at random")
    parser.add_argument("--only", default="", help="only files whose path contains this")
    parser.add_argument("--survivors", action="store_true", help="only those that are allowed to survive")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="the tests that have to notice")
    given = parser.parse_args()
    allowed = {Mutant(entry["file"], entry["line"], entry["changed"]) for entry in survivors()}
    paths = sorted(path for pattern in FILES for path in SOURCES.glob(pattern) if given.only in str(path))
    planned = [(path, *planned) for path in paths for planned in mutants(path)]
    if given.survivors:
        planned = [entry for entry in planned if entry[1] in allowed]
    if given.sample is not None:
        planned = random.sample(planned, min(given.sample, len(planned)))
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    if noticed(SOURCES / "decision.py", (SOURCES / "decision.py").read_text(encoding="utf-8"), given.tests):
        sys.exit("the tests fail without any change")
    tried = []
    for path, mutant, code in planned:
        tried.append((mutant, noticed(path, code, given.tests)))
        if not tried[-1][1] and mutant not in allowed:
            print(ENTRY.format(*mutant), flush=True)
    return report(tried, allowed)


def survivors() -> list[dict[str, str]]:
    """Changes that may go unnoticed, each with a reason."""
    entries: list[dict[str, str]] = tomllib.loads(SURVIVORS.read_text(encoding="utf-8"))["survivor"]
    return entries


def mutants(path: Path) -> Iterator[tuple[Mutant, str]]:
    """Every change to a file, and the file with it."""
    from cosmic_ray import mutating, plugins
    from cosmic_ray.ast import ast_nodes, get_ast

    code = path.read_text(encoding="utf-8")
    name = path.relative_to(SOURCES).as_posix()
    for operator in filter(CHANGES.fullmatch, plugins.operator_names()):
        change: Any = plugins.get_operator(operator)()
        places = sum(len(list(change.mutation_positions(node))) for node in ast_nodes(get_ast(code)))
        for occurrence in range(places):
            changed = mutating.mutate_code(code, change, occurrence)
            lines = list(unified_diff(code.splitlines(), changed.splitlines(), n=0))[3:]  # after its three of heading
            before, after = (" ".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+")
            mutant = Mutant(name, before, after)
            if not same_element(mutant):
                yield mutant, changed


def same_element(mutant: Mutant) -> bool:
    """Whether all that changed is [0] to [-1], in an array that has one element."""
    return "options[0]" not in mutant.line and mutant.line.replace(" ", "") in (
        mutant.changed[: found.start()].replace(" ", "") + "[0]" + mutant.changed[found.end() :].replace(" ", "")
        for found in re.finditer(r"\[ -1\]", mutant.changed)
    )


def noticed(path: Path, code: str, tests: tuple[str, ...]) -> bool:
    """Whether a test fails when the file at `path` holds this code."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
            resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
            put(path, code)
            os._exit(int(pytest.main([*INTERPRETED, *tests])))
        os._exit(1)
    return os.waitpid(child, 0)[1] != 0


def put(path: Path, code: str) -> None:
    """Let imports find this code instead of the file's; it is not cached."""
    read = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: Any, name: str) -> Any:
        return compile(code, str(path), "exec") if Path(loader.path) == path else read(loader, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def report(tried: list[tuple[Mutant, bool]], allowed: set[Mutant]) -> int:
    """The score by file; 1 if a change went unnoticed that has no reason to."""
    columns = {name: Counter[str]() for name in ("changes", "noticed", "allowed")}
    for mutant, found in tried:
        columns["changes"][mutant.file] += 1
        columns["noticed"][mutant.file] += found
        columns["allowed"][mutant.file] += not found and mutant in allowed
    print(f"{'file':28}" + "".join(f"{name:>10}" for name in columns))
    for file in columns["changes"]:
        print(f"{file:28}" + "".join(f"{column[file]:10}" for column in columns.values()))
    print(f"{'all':28}" + "".join(f"{column.total():10}" for column in columns.values()))
    changes, found, accepted = (column.total() for column in columns.values())
    print(
        f"{found / changes:.1%} noticed, {found / max(1, changes - accepted):.1%} of those without a reason not to be"
    )
    return int(found + accepted < changes)


if __name__ == "__main__":
    sys.exit(main())
