"""Whether the default keeps a floor or a budget, told nothing else, and how near the optimum it comes, beside rivals.

    python benchmarks/goals.py --tables DIR                    minutes
    python benchmarks/goals.py --tables DIR --only other       one table, or the goals of other sorts: parts of it
    python benchmarks/goals.py --tables DIR --all-options      58 and 67 options, where a kind has ten otherwise
    python benchmarks/goals.py --tables DIR --plot results/goals.png

Floors and budgets lie at 20, 50 and 80 % of the way from the cheapest options to the best. Rivals meet the same tasks;
each is shown in the best of its settings for every goal, chosen afterwards: of those that keep it within 1 %, the one
nearest to the optimum. Then goals of other sorts, late reports, failures, and noise. Every limit is judged; a missed
one is exit code 1. All numbers go to results/goals.csv.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from goal_courses import (
    EARLY,
    MARKS,
    PARETO,
    TASKS,
    WINDOW,
    Course,
    by_bounds,
    by_fixed_price,
    by_pareto_bandit,
    default,
    kind_by_kind,
    mean_and_error,
)
from goal_figure import draw
from goal_worlds import FAILING, LATE, NOISY, RECORDED, SHARES, at_shares, beside, by_kind, made, tables
from judging import Verdict, print_verdicts
from table import command_line
from worthwhile import Environment
from worthwhile.state import Floats

RUNS, RIVAL_RUNS = 10, 3
OTHER = "other"
KEPT = 1.0  # %: by so much a mean may miss what was wanted, at the end
SHORT, MOST_SHORT = 3.0, 1.0  # %: by so much a window may, but for so many of them
WORSE = 5.0  # %: so much more cost than the optimum, or less reward or ratio
WORSE_IN_NOISE = 10.0  # … where a window's mean is off by as much by chance alone
REACHED = 0.97  # of the best reward, where a floor is out of reach
LUCK = 3.0  # standard deviations of a window's luck that come on top where there is more noise than in the tables
TIE = 2.0  # standard errors


def judge_table(courses: Sequence[Course]) -> Iterator[Verdict]:
    """The default on one table: floors and budgets at every share."""
    for tasks in (EARLY, TASKS):
        yield kept_at_the_end(courses, tasks)
        short = {course.case.name: course.short_windows(tasks, SHORT) for course in courses}
        most, where = max(short, key=short.__getitem__), f"{courses[0].case.world}, T = {tasks:,}"
        limit = f"{where}: at most {MOST_SHORT:g} % of a goal's windows miss it by more than {SHORT:g} %"
        yield Verdict(limit, f"{short[most]:.2g} % ({most})", short[most] <= MOST_SHORT)
    for course in courses:
        yield near_optimum(course)


def kept_at_the_end(courses: Sequence[Course], tasks: int) -> Verdict:
    """Every goal, on average over the runs."""
    spare = {course.case.name: course.spare(tasks) for course in courses}
    least = min(spare, key=lambda name: float(spare[name].mean()))
    mean, worst = float(spare[least].mean()), min(float(values.min()) for values in spare.values())
    limit = f"{courses[0].case.world}, T = {tasks:,}: every goal kept within {KEPT:g} %"
    return Verdict(limit, f"{mean:+.2f} % ({least}); worst run {worst:+.2f} %", mean >= -KEPT)


def near_optimum(course: Course, most: float = WORSE) -> Verdict:
    """How far from the best that can be done."""
    worse, error = course.worse(TASKS)
    limit = f"{course.case.world}, {course.case.name}: within {most:g} % of the optimum"
    return Verdict(limit, f"{worse:.2f} ± {error:.2f} %", worse <= most)


def judge_beside(ours: Course, rival: Course) -> Iterator[Verdict]:
    """The default keeps a budget no worse than ParetoBandit and, if that keeps it, earns no less."""
    for tasks in (EARLY, TASKS):
        where = f"{ours.case.world}, {ours.case.name}, T = {tasks:,}"
        own, others = (min(0.0, float(course.spare(tasks).mean())) for course in (ours, rival))
        limit = f"{where}: missed no more than by {rival.who}"
        yield Verdict(limit, f"{own:+.2f} % beside {others:+.2f} %", own >= min(others, -KEPT))
        runs = len(rival.reward)
        more, error = mean_and_error(ours.behind_optimum(tasks)[:runs] - rival.behind_optimum(tasks))
        limit = f"{where}: no less reward than {rival.who}"
        yield Verdict(limit, f"{-more:+.2f} ± {error:.2f} %", others < -KEPT or more <= TIE * error)


def judge_other(course: Course) -> Iterator[Verdict]:
    """Other sorts of goals, and other worlds."""
    case = course.case
    if case.best.infeasible:
        reward = float(course.reward[:, -1].mean()) / TASKS
        limit = f"{case.world}, {case.name}: at least {REACHED:.0%} of what can be reached"
        yield Verdict(limit, f"{100 * reward / case.best.reward:.2f} %", reward >= REACHED * case.best.reward)
        return
    yield kept_at_the_end([course], TASKS)
    noisy = case.world in (NOISY, FAILING)
    if noisy:
        by = SHORT + LUCK * course.window_luck()
        short = course.short_windows(TASKS, by)
        limit = f"{case.world}, {case.name}: at most {MOST_SHORT:g} % of the windows miss it by more than {by:.1f} %"
        yield Verdict(limit, f"{short:.2g} %", short <= MOST_SHORT)
    yield near_optimum(course, WORSE_IN_NOISE if noisy else WORSE)


def judge_kinds(course: Course, spare: Floats) -> Iterator[Verdict]:
    """Where every kind has a floor of its own."""
    means, kinds = spare.mean(axis=0), course.case.environment.problem.kinds
    least = int(means.argmin())
    limit = f"{course.case.world}, {course.case.name}: each kept within {KEPT:g} %"
    yield Verdict(limit, f"{means[least]:+.2f} % ({kinds[least]})", bool(means[least] >= -KEPT))
    yield near_optimum(course)


def print_course(course: Course) -> None:
    """One line."""
    name = f"{course.who} [{course.setting}]" if course.setting else course.who
    early, late = (course.spare(tasks) for tasks in (EARLY, TASKS))
    kept = f"{early.mean():+9.2f} {early.min():+9.2f} {late.mean():+9.2f} {late.min():+9.2f}"
    worse, error = course.worse(TASKS)
    short = course.short_windows(TASKS, SHORT)
    print(f"  {course.case.name:<34} {name:<34} {kept} {short:9.1f} {worse:9.2f} ± {error:.2f}", flush=True)


def print_heading(world: str) -> None:
    """What the columns of a world's lines are."""
    columns = f"{'10⁴: kept':>9} {'worst':>9} {'10⁵: kept':>9} {'worst':>9} {'short':>9} {'worse':>9}"
    print(f"\n{world:<71} {columns}")


def on_table(name: str, environment: Environment, options: argparse.Namespace) -> tuple[list[Course], list[Verdict]]:
    """Floors and budgets on one table, ours and the rivals'."""
    cases, seed = at_shares(name, environment), options.seed
    every = default(cases, options.runs, seed)
    verdicts = [*judge_table(every)]
    if not options.alone:
        for rule in (by_bounds, by_fixed_price, by_pareto_bandit):
            every += rule(cases, RIVAL_RUNS, seed)
    print_heading(name)
    for case in cases:
        ours, *rivals = (course for course in every if course.case.name == case.name)
        for course in (ours, *rivals):
            print_course(course)
        verdicts += [verdict for rival in rivals if rival.who == PARETO for verdict in judge_beside(ours, rival)]
    return every, verdicts


def elsewhere(worlds: Mapping[str, Environment], options: argparse.Namespace) -> tuple[list[Course], list[Verdict]]:
    """Goals of other sorts on the tables, late reports, and made problems; the default alone."""
    every, verdicts, runs, seed = list[Course](), list[Verdict](), options.runs, options.seed
    groups = [cases for each in worlds.items() for cases in (beside(*each), at_shares(*each, SHARES[1:2], LATE))]
    for cases in (*groups, *made(seed)):
        every += default(cases, runs, seed)
    verdicts += [verdict for course in every for verdict in judge_other(course)]
    for each in worlds.items():
        course, spare = kind_by_kind(by_kind(*each), runs, seed)
        every.append(course)
        verdicts += judge_kinds(course, spare)
    for world in dict.fromkeys(course.case.world for course in every):
        print_heading(f"{world}, other goals" if world in worlds else world)
        for course in every:
            if course.case.world == world:
                print_course(course)
    return every, verdicts


def save(path: Path, courses: Sequence[Course]) -> None:
    """A row for every course and mark, means over the runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["world", "goal", "policy", "setting", "runs", "task", "reward", "cost"])
        for course in courses:
            names = course.case.world, course.case.name, course.who, course.setting, len(course.reward)
            for mark, reward, cost in zip(MARKS, course.reward.mean(axis=0), course.cost.mean(axis=0), strict=True):
                table.writerow([*names, mark, f"{reward / mark:.6g}", f"{cost / mark:.6g}"])


def main() -> int:
    """Print courses and verdicts; exit code 1 if a limit is missed."""
    parser = command_line(__doc__)
    parser.add_argument("--tables", type=Path, required=True, metavar="DIR", help="the recorded tables (.parquet)")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help=f"of the default ({RUNS})")
    parser.add_argument("--all-options", action="store_true", help="of every kind, where ten are taken otherwise")
    parser.add_argument("--only", choices=[*RECORDED, OTHER], help="a part: one table, or all goals of other sorts")
    parser.add_argument("--alone", action="store_true", help="without the rivals")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="the figure, .png or .svg")
    parser.add_argument("--out", type=Path, default=Path("results/goals.csv"), help="where the numbers go")
    options = parser.parse_args()
    if options.plot and options.only:
        parser.error("--plot draws what all parts have found; leave --only out")
    missing = [name for name in RECORDED if not (options.tables / f"{name}.parquet").is_file()]
    if missing or options.runs < RIVAL_RUNS:
        few = f"--runs: at least {RIVAL_RUNS}, as many as the rivals have"
        parser.error(f"no {missing[0]}.parquet in {options.tables}" if missing else few)
    began, worlds = time.perf_counter(), dict(tables(options.tables, options.all_options))
    print("kept: % above the floor or within the budget, on average and in the worst run; short: % of the windows of")
    print(
        f"{WINDOW:,} tasks that miss it by more than {SHORT:g} %; worse: % more cost, or less reward, than the optimum"
    )
    found = [on_table(*world, options) for world in worlds.items() if options.only in (None, world[0])]
    if options.only in (None, OTHER):
        found.append(elsewhere(worlds, options))
    every = [course for courses, _ in found for course in courses]
    save(options.out, every)
    if options.plot:
        draw(every, options.plot)
    print("\nlimits:")
    kept = print_verdicts([verdict for _, verdicts in found for verdict in verdicts])
    print(f"\nin {time.perf_counter() - began:.0f} s; the numbers are in {options.out}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
