"""What the default gains by looking at features of tasks, beside itself without them and beside other libraries.

    python benchmarks/features.py --tables DIR          ten minutes; --quick: two

DIR has solver portfolios, NAME.parquet and NAME.features.parquet, as `worthwhile replay --features` reads them. All
meet the same random tasks. Measured is ΣR/ΣC: in one pass through every table in random order, and in 4 000 tasks drawn
from it; with features that say nothing, with those of another task, with late reports, real-valued rewards, options
that change from task to task, three tables as three kinds; on made worlds whose optimum is known; beside our policies
with linear models, and beside rivals that are told θ*, each in the best of its settings; and the time it takes. Every
limit is judged; a missed one is exit code 1. All numbers go to results/features.csv.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from feature_rivals import RIVALS, SETTINGS, Match, play_all
from feature_speed import MOST_DECIDE, MOST_REPORT, MOST_TASK, WORST_REPORT, Times, interpreted, per_task
from feature_worlds import (
    MERGED,
    Made,
    exclusive_or,
    merged,
    one_split,
    per_item,
    rare_cell,
    scenario,
    scenarios,
    swapped,
    useless,
    with_another_tasks,
    with_noise,
    with_real_rewards,
    without_features,
)
from judging import Verdict, geometric, print_verdicts
from offers import changing_offers
from table import command_line
from worthwhile import Environment, simulate, solve
from worthwhile.policies.registry import DEFAULT
from worthwhile.simulation.environments.base import Drift
from worthwhile.state import Floats

RUNS, RIVAL_RUNS, QUICK_RUNS = 10, 3, 2
TASKS, LONG, LATE = 4_000, 20_000, 50
ONE_PASS, REPLACED = "one pass", f"{TASKS:,} tasks"
PLAIN, NOISY, SHUFFLED, DELAYED, REAL, OFFERED = (
    "own features", "50 more that say nothing", "another task's features", f"reports {LATE} tasks late",
    "real-valued rewards", "half of the options at a time",
)  # fmt: skip
GAIN = {ONE_PASS: 1.07, REPLACED: 1.15}  # × no features, geometric mean
WORST = {ONE_PASS: 0.96, REPLACED: 0.97}  # of a scenario
NOISE_LOSS = 0.03  # of the gain
SHUFFLED_MEAN, SHUFFLED_WORST = 0.98, 0.92
VARIANT_WORST, GAIN_KEPT = 0.98, 0.8
AHEAD = 0.8  # of the scenarios, of each rival
HALF_LIFE = f"{DEFAULT},half_life=1000"
LINEAR = {  # settings, picked on these very tables and the best first; the last is what it does unless told otherwise
    "linear-greedy": (",exploration=0,ridge=30", ",exploration=0.1", ""),
    "linear-ts": (",exploration=0.1,ridge=300", ",exploration=0.1", ""),
}

Ratios = Mapping[str, "Compared"]  # by scenario


class Compared(NamedTuple):
    """What was earned per cost in every run, with features and without."""

    looks: Floats
    blind: Floats

    @property
    def gain(self) -> float:
        return float(self.looks.mean() / self.blind.mean())


class Found(NamedTuple):
    """Everything measured."""

    ratios: Mapping[tuple[str, str], Ratios]  # by horizon and variant
    made: Mapping[str, tuple[Compared, float]]  # by name: and what is possible
    kinds: tuple[Compared, float] | None  # three tables as kinds, and what each gains alone
    rivals: Mapping[tuple[str, str], Mapping[str, Floats]]  # by horizon and rival, then scenario
    times: Times | None
    linear: Mapping[tuple[str, str], Mapping[str, Floats]] = {}  # likewise of our own with linear models; not judged
    of_fixed: float | None = None  # what is earned in many tasks, of the best fixed option


def compare(
    environment: Environment | Drift, tasks: int, runs: int, seed: int, delay: int = 0, policy: str = DEFAULT
) -> Compared:
    """Both on the same tasks."""

    def ratios(world: Environment | Drift) -> Floats:
        results = simulate(world, [policy], tasks, runs, seed, delay, marks=[tasks], progress=False)
        last: Floats = results.measure("ratio")[:, 0, -1]
        return last

    return Compared(ratios(environment), ratios(without_features(environment)))


def compare_offers(environment: Environment, tasks: int, runs: int, seed: int) -> Compared:
    """The same where every task offers half of the options."""
    worlds = environment, without_features(environment)
    looks, blind = (changing_offers(world, tasks, runs, seed) for world in worlds if isinstance(world, Environment))
    return Compared(looks, blind)


Variant = Callable[[Environment, int, int, int], Compared]  # of a world, tasks, runs, seed
VARIANTS: dict[tuple[str, str], Variant] = {
    (ONE_PASS, PLAIN): compare,
    (ONE_PASS, NOISY): lambda world, tasks, runs, seed: compare(with_noise(world, seed), tasks, runs, seed),
    (ONE_PASS, SHUFFLED): lambda world, tasks, runs, seed: compare(with_another_tasks(world, seed), tasks, runs, seed),
    (REPLACED, PLAIN): compare,
    (REPLACED, DELAYED): lambda world, tasks, runs, seed: compare(world, tasks, runs, seed, LATE),
    (REPLACED, REAL): lambda world, tasks, runs, seed: compare(with_real_rewards(world, seed), tasks, runs, seed),
    (REPLACED, OFFERED): compare_offers,
}


def measure_tables(folder: Path, runs: int, seed: int) -> dict[tuple[str, str], Ratios]:
    """Every variant of every scenario."""
    found: dict[tuple[str, str], Ratios] = {}
    for (horizon, variant), measure in VARIANTS.items():
        ratios = {}
        for name in scenarios(folder):
            world = scenario(folder, name, one_pass=horizon == ONE_PASS)
            ratios[name] = measure(world, world.most_tasks or TASKS, runs, seed)
        found[horizon, variant] = ratios
        print_ratios(f"{horizon}, {variant}", ratios)
    return found


def made_worlds() -> Iterator[tuple[str, Made, int, str]]:
    """Name, world, tasks and policy."""
    yield "one split", one_split(), TASKS, DEFAULT
    yield "one split, real-valued rewards", one_split(real_valued=True), TASKS, DEFAULT
    yield "exclusive or", exclusive_or(), LONG, DEFAULT
    yield "rare cell", rare_cell(), LONG, DEFAULT
    yield "useless features", useless(), TASKS, DEFAULT
    yield "swapped half-way", swapped(2 * TASKS), 2 * TASKS, HALF_LIFE


MADE_LIMITS = {
    "one split": 1.10,
    "one split, real-valued rewards": 1.10,
    "exclusive or": 1.10,
    "rare cell": 1.03,
    "useless features": VARIANT_WORST,
    "swapped half-way": 1.01,
}


def measure_made(runs: int, seed: int) -> dict[str, tuple[Compared, float]]:
    """The made worlds."""
    found = {}
    for name, made, tasks, policy in made_worlds():
        found[name] = compare(made.environment, tasks, runs, seed, policy=policy), made.possible
        print(
            f"{f'{name}, {tasks:,} tasks':<44} {found[name][0].gain:6.3f} ×, possible {made.possible:.3f} ×", flush=True
        )
    return found


def measure_kinds(folder: Path, plain: Ratios, runs: int, seed: int) -> tuple[Compared, float] | None:
    """Three scenarios as three kinds of one scheduler, as many tasks of each as alone."""
    if not set(MERGED) <= plain.keys():
        return None
    world = merged([scenario(folder, name) for name in MERGED])
    found = compare(world, TASKS * len(MERGED), runs, seed)
    alone = geometric([plain[name].gain for name in MERGED])
    print(f"{' + '.join(MERGED)}, three kinds: {found.gain:.3f} ×, each alone {alone:.3f} ×", flush=True)
    return found, alone


def measure_rivals(folder: Path, runs: int, seed: int, quick: bool) -> dict[tuple[str, str], dict[str, Floats]]:
    """What every rival earns in the best of its settings."""
    matches, names = [], scenarios(folder)
    settings = {rival: SETTINGS[rival][: 1 if quick else None] for rival in RIVALS}
    for horizon, name in ((horizon, name) for horizon in (ONE_PASS, REPLACED) for name in names):
        world = scenario(folder, name, one_pass=horizon == ONE_PASS)
        tasks = world.most_tasks or TASKS
        matches += [
            (horizon, name, Match(world, tasks, seed, run, rival, setting))
            for rival in RIVALS for setting in settings[rival] for run in range(runs)
        ]  # fmt: skip
    earned = play_all([match for *_, match in matches], os.cpu_count() or 1)
    found = {}
    for horizon in (ONE_PASS, REPLACED):
        for rival in RIVALS:
            tried = {
                setting: {
                    name: np.array(
                        [value for (h, n, match), value in zip(matches, earned, strict=True)
                         if (h, n, match.rival, match.setting) == (horizon, name, rival, setting)]
                    )
                    for name in names
                }
                for setting in settings[rival]
            }  # fmt: skip
            best = max(tried, key=lambda setting: geometric([values.mean() for values in tried[setting].values()]))
            found[horizon, rival] = tried[best]
            print(f"{horizon}: {rival} is best with {best}", flush=True)
    return found


def measure_linear(folder: Path, runs: int, seed: int, quick: bool) -> dict[tuple[str, str], dict[str, Floats]]:
    """What policies with linear models earn in the best of their settings."""
    found = {}
    for horizon, (policy, settings) in ((horizon, one) for horizon in (ONE_PASS, REPLACED) for one in LINEAR.items()):
        texts = [policy + setting for setting in settings[: 1 if quick else None]]
        tried: dict[str, dict[str, Floats]] = {text: {} for text in texts}
        for name in scenarios(folder):
            world = scenario(folder, name, one_pass=horizon == ONE_PASS)
            tasks = world.most_tasks or TASKS
            ratios = simulate(world, texts, tasks, runs, seed, marks=[tasks], progress=False).measure("ratio")
            for place, text in enumerate(texts):
                tried[text][name] = ratios[:, place, -1]
        means = {text: geometric([values.mean() for values in tried[text].values()]) for text in texts}
        best = max(means, key=means.__getitem__)
        found[horizon, policy] = tried[best]
        shown = ", ".join(f"{text} {100 * mean / means[best]:.0f} %" for text, mean in means.items())
        print(f"{horizon}: {policy} is best with {best}: {shown} of that", flush=True)
    return found


def print_ratios(title: str, ratios: Ratios) -> None:
    """A line per scenario."""
    print(f"\n{title:<44}{'without':>10}{'with':>10}{'gain':>10}")
    for name, one in ratios.items():
        print(f"  {name:<42}{one.blind.mean():>10.2f}{one.looks.mean():>10.2f}{one.gain:>8.3f} ×")
    print(f"  {'geometric mean':<62}{mean_gain(ratios):>8.3f} ×", flush=True)


def print_bounds(folder: Path, found: Mapping[tuple[str, str], Ratios]) -> float:
    """What there is to earn: the best fixed option in hindsight, and who knows every item; the mean of the first."""
    print(f"\n{'of the best fixed option':<32}{'one pass':>18}{REPLACED:>18}{'every item known':>18}")
    shares = []
    for name in scenarios(folder):
        world = scenario(folder, name)
        fixed = solve(world.problem).ratio
        shares.append(float(found[REPLACED, PLAIN][name].looks.mean()) / fixed)
        pairs = (found[horizon, PLAIN][name] for horizon in (ONE_PASS, REPLACED))
        shown = (f"{one.blind.mean() / fixed:.3f} → {one.looks.mean() / fixed:.3f}" for one in pairs)
        print(f"  {name:<30}" + "".join(f"{text:>18}" for text in shown) + f"{per_item(world) / fixed:>18.3f}")
    sys.stdout.flush()
    return geometric(shares)


def print_rivals(found: Found) -> None:
    """What others earn beside the default, in units of the default without features."""
    others = {**found.linear, **found.rivals}
    for horizon in dict.fromkeys(horizon for horizon, _ in others):
        plain, names = found.ratios[horizon, PLAIN], [other for where, other in others if where == horizon]
        gains = {
            name: [one.gain, *(others[horizon, other][name].mean() / one.blind.mean() for other in names)]
            for name, one in plain.items()
        }
        print(f"\n{f'{horizon}: × no features':<32}" + "".join(f"{name:>24}" for name in (DEFAULT, *names)))
        for name, row in gains.items():
            print(f"  {name:<30}" + "".join(f"{gain:>24.3f}" for gain in row))
        means = map(geometric, zip(*gains.values(), strict=True))
        print(f"  {'geometric mean':<30}" + "".join(f"{mean:>24.3f}" for mean in means), flush=True)


def mean_gain(ratios: Ratios) -> float:
    return geometric([one.gain for one in ratios.values()])


def judge(found: Found) -> Iterator[Verdict]:
    """Every limit about what was measured."""
    for (horizon, variant), ratios in found.ratios.items():
        yield from judge_variant(horizon, variant, ratios, found.ratios[horizon, PLAIN])
    if found.of_fixed is not None:
        limit = f"{REPLACED}: as much as the best fixed option in hindsight, geometric mean"
        yield Verdict(limit, f"{found.of_fixed:.3f} ×", found.of_fixed >= 1.0)
    for name, (compared, _) in found.made.items():
        least = MADE_LIMITS[name]
        yield Verdict(f"{name}: at least {least:g} × no features", f"{compared.gain:.3f} ×", compared.gain >= least)
    if found.kinds is not None:
        compared, alone = found.kinds
        yield from judge_kept("three tables as three kinds", compared.gain, alone)
    for (horizon, rival), earned in found.rivals.items():
        yield judge_rival(horizon, rival, earned, found.ratios[horizon, PLAIN])
    if found.times is not None:
        yield from judge_times(found.times)


def judge_variant(horizon: str, variant: str, ratios: Ratios, plain: Ratios) -> Iterator[Verdict]:
    """One table of ratios."""
    where, gain = f"{horizon}, {variant}", mean_gain(ratios)
    if variant == PLAIN:
        yield Verdict(f"{where}: geometric mean at least {GAIN[horizon]:g} ×", f"{gain:.3f} ×", gain >= GAIN[horizon])
        yield judge_worst(where, ratios, WORST[horizon])
    elif variant == NOISY:
        lost = mean_gain(plain) - gain
        limit = f"{where}: at most {100 * NOISE_LOSS:g} points of the gain lost"
        yield Verdict(limit, f"{100 * lost:.2f}", lost <= NOISE_LOSS)
    elif variant == SHUFFLED:
        limit = f"{where}: geometric mean at least {SHUFFLED_MEAN:g} ×"
        yield Verdict(limit, f"{gain:.3f} ×", gain >= SHUFFLED_MEAN)
        yield judge_worst(where, ratios, SHUFFLED_WORST)
    else:
        yield judge_worst(where, ratios, VARIANT_WORST)
        yield [*judge_kept(where, gain, mean_gain(plain))][-1]


def judge_worst(where: str, ratios: Ratios, least: float) -> Verdict:
    bad = ", ".join(f"{name} {one.gain:.3f} ×" for name, one in ratios.items() if one.gain < least)
    return Verdict(f"{where}: none below {least:g} ×", bad or "none", not bad)


def judge_kept(where: str, gain: float, plain: float) -> Iterator[Verdict]:
    """Nothing lost, and most of the gain kept."""
    yield Verdict(f"{where}: at least {VARIANT_WORST:g} × no features", f"{gain:.3f} ×", gain >= VARIANT_WORST)
    least = 1.0 + GAIN_KEPT * (plain - 1.0)
    yield Verdict(f"{where}: {GAIN_KEPT:.0%} of the gain kept", f"{gain:.3f} of {plain:.3f} ×", gain >= least)


def judge_rival(horizon: str, rival: str, earned: Mapping[str, Floats], plain: Ratios) -> Verdict:
    """Ahead of it in so many scenarios, on the same runs."""
    ahead = [name for name, values in earned.items() if plain[name].looks[: len(values)].mean() > values.mean()]
    limit = f"{horizon}: ahead of {rival} on at least {AHEAD:.0%} of the tables"
    return Verdict(limit, f"{len(ahead)} of {len(earned)}", len(ahead) >= AHEAD * len(earned))


def judge_times(times: Times) -> Iterator[Verdict]:
    """What looking at 100 features takes, with 24 options."""
    pairs = (
        ("compiled, a task all in", times.task, MOST_TASK, 1e6, "µs"),
        ("interpreted, a decision on average", times.decide, MOST_DECIDE, 1e3, "ms"),
        ("interpreted, a report on average", times.report, MOST_REPORT, 1e3, "ms"),
        ("interpreted, the slowest report", times.worst_report, WORST_REPORT, 1e3, "ms"),
    )
    for what, seconds, most, units, unit in pairs:
        yield Verdict(f"{what}: at most {units * most:g} {unit}", f"{units * seconds:.3g} {unit}", seconds <= most)


def save(path: Path, found: Found) -> None:
    """One line per run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("horizon", "variant", "world", "run", "ratio", "ratio_without_features"))
        for (horizon, variant), ratios in found.ratios.items():
            for name, one in ratios.items():
                write_runs(writer, (horizon, variant, name), one)
        for name, (compared, _) in found.made.items():
            write_runs(writer, ("", "made", name), compared)
        for (horizon, rival), earned in {**found.linear, **found.rivals}.items():
            for name, values in earned.items():
                writer.writerows((horizon, rival, name, run, f"{value:.6g}", "") for run, value in enumerate(values))


def write_runs(writer: object, names: Sequence[str], one: Compared) -> None:
    for run, pair in enumerate(zip(one.looks, one.blind, strict=True)):
        writer.writerow((*names, run, *(f"{value:.6g}" for value in pair)))  # type: ignore[attr-defined]


def run(options: argparse.Namespace) -> Found:
    """Measure everything, what takes time before what takes longer."""
    seed, runs = 1000 * options.seed, QUICK_RUNS if options.quick else options.runs
    one_task = per_task(TASKS if options.quick else LONG)
    times = Times(*one_task, *interpreted(300 if options.quick else 1500))
    print(f"100 features, 24 options: {times.words()}", flush=True)
    made = measure_made(runs, seed)
    ratios = measure_tables(options.tables, runs, seed)
    of_fixed = print_bounds(options.tables, ratios)
    kinds = measure_kinds(options.tables, ratios[REPLACED, PLAIN], runs, seed)
    rival_runs = 1 if options.quick else min(RIVAL_RUNS, runs)
    linear = measure_linear(options.tables, rival_runs, seed, options.quick)
    rivals = {} if options.no_rivals else measure_rivals(options.tables, rival_runs, seed, options.quick)
    return Found(ratios, made, kinds, rivals, times, linear, of_fixed)


def main() -> int:
    """Print tables and verdicts; exit code 1 if a limit is missed."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--tables", type=Path, required=True, metavar="DIR", help="solver portfolios with features (.parquet)")
    add("--runs", type=int, default=RUNS, metavar="N", help=f"of every world ({RUNS}); of rivals at most {RIVAL_RUNS}")
    add("--quick", action="store_true", help=f"{QUICK_RUNS} runs, and one of each rival in one setting")
    add("--no-rivals", action="store_true", help="without other libraries")
    add("--out", type=Path, default=Path("results/features.csv"), help="where the numbers go")
    options = parser.parse_args()
    if not scenarios(options.tables):
        parser.error(f"no .features.parquet in {options.tables}")
    begin = time.perf_counter()
    found = run(options)
    print_rivals(found)
    save(options.out, found)
    print("\nlimits:")
    kept = print_verdicts([*judge(found)])
    print(f"\nin {time.perf_counter() - begin:.0f} s; the numbers are in {options.out}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
