"""Which runner should a build get? Three suites, three machines: bigger ones cost more, but somebody waits.

A verdict is worth 1, red or green. Its cost is the machine's minutes at their price, and the minutes that a developer
waits. A runner that dies has failed: what it cost is paid, and the build goes to another one.

Prints:

    always small: 60.2 cents a verdict
    always medium: 26.0 cents a verdict
    always large: 28.1 cents a verdict
    learned on the way: 23.5 cents a verdict, 1 of 2000 runners died
    lint: small 98%, medium 2%
    unit: medium 99%, large 1%
    browser: large 98%, medium 1%, small 1%
"""

from __future__ import annotations

import random

from worthwhile import Scheduler

PRICE = {"small": 0.8, "medium": 1.6, "large": 6.4}  # cents per minute of the machine
WAITING = 4.0  # cents per minute of the developer
SHARE = {"lint": 0.5, "unit": 0.35, "browser": 0.15}  # of the builds
MINUTES = {  # nobody tells the scheduler
    "lint": {"small": 1.7, "medium": 1.6, "large": 1.5},
    "unit": {"small": 12.0, "medium": 5.0, "large": 3.0},
    "browser": {"small": 15.0, "medium": 14.0, "large": 6.0},
}
DIES = {("browser", "small"): 0.7}  # out of memory


def run(suite: str, runner: str, luck: random.Random) -> tuple[bool, float]:
    """Whether there is a verdict, and what the attempt cost, in cents."""
    minutes = MINUTES[suite][runner] * luck.uniform(0.7, 1.3)
    return luck.random() >= DIES.get((suite, runner), 0.0), minutes * (PRICE[runner] + WAITING)


def always(runner: str) -> float:
    """Cents per verdict if every build goes to one runner, again and again until it does not die."""
    return sum(
        share * MINUTES[suite][runner] * (PRICE[runner] + WAITING) / (1 - DIES.get((suite, runner), 0.0))
        for suite, share in SHARE.items()
    )


def main(builds: int = 2000) -> None:
    luck = random.Random(4)
    with Scheduler(seed=4) as scheduler:
        for _ in range(builds):
            suite = luck.choices(list(SHARE), list(SHARE.values()))[0]
            task = scheduler.decide(suite, options=list(PRICE))
            verdict, cents = run(suite, str(task.option), luck)
            while not verdict:
                task.fail(cost=cents, reason="out of memory")
                task = task.again()
                verdict, cents = run(suite, str(task.option), luck)
            task.report(reward=1.0, cost=cents)
        summary = scheduler.summary()
    for runner in PRICE:
        print(f"always {runner}: {always(runner):.1f} cents a verdict")
    cents = summary.cost / summary.reward
    print(f"learned on the way: {cents:.1f} cents a verdict, {summary.failed} of {builds} runners died")
    for kind in sorted(summary.kinds, key=lambda kind: list(SHARE).index(kind.kind)):
        used = sorted(kind.options, key=lambda option: -option.share)
        print(f"{kind.kind}: " + ", ".join(f"{one.option} {one.share:.0%}" for one in used if one.share >= 0.005))


if __name__ == "__main__":
    main()
