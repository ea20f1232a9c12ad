"""`worthwhile run`: decide, run a command with the option, measure it, report what came of it."""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worthwhile.cli.arguments import add_scheduler, feature, features_from, positive
from worthwhile.cli.help import add_parser
from worthwhile.cli.opening import opened
from worthwhile.cli.output import say, show
from worthwhile.errors import BadFeedback, BadParameter, BadTask, Error, ServiceError, StoreError
from worthwhile.execution.command import ERRORS, GRACE, METERS, OUTPUT, Commands, LastLine, Ran, Stopped
from worthwhile.formatting import digits, shown
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.task import Task
from worthwhile.live.validation import Option, as_option, feedback

if TYPE_CHECKING:
    from worthwhile.service.client import Client

PLACE = "{option}"
OWN = "own"  # the meter of a command that says itself what it has cost
MOST_READ = 1 << 16  # bytes, from the end of a reward file
LONGEST = 1e9  # seconds, 30 years
SLACK = 60.0  # seconds that a lease is longer than what is to be run
RUN = """\
Decides, runs COMMAND with {option} replaced by the option (WORTHWHILE_OPTION and WORTHWHILE_TASK say it as well),
measures it, reports, and ends with its exit code. A command that ends with 0 has brought the reward 1, or the number
that it wrote into --reward-file, or printed as its last line (--reward-line); any other has failed. With --meter own
there are two numbers on that line, the reward and the cost.

examples:
  worthwhile run tasks.db build --options 1 2 4 8 -- make -j {option}
  worthwhile run tasks.db agent --options small large --reward-line --meter own -- ./agent.sh --model {option}
  worthwhile run tasks.db solve --options 10 60 300 --timeout 400 --attempts 2 -- ./solve --limit {option} task.cnf

A command that takes longer than --timeout is asked to end (SIGTERM), and killed five seconds later with all that it has
started; the exit code is 124. Signals go on to the command, and cancel the task; SIGUSR1 and SIGUSR2
only go on.
"""


def add_commands(commands: Any) -> None:
    """worthwhile run"""
    parser = add_scheduler(add_parser(commands, "run", RUN), run_run)
    parser.add_argument("kind", metavar="KIND")
    parser.add_argument("--options", nargs="+", required=True, metavar="OPTION", help="what to choose from")
    parser.add_argument("program", nargs="+", metavar="COMMAND", help="after --; what to run, and its arguments")
    add = parser.add_argument
    add("--key", help="the same key is the same task: one that has ended is not run again")
    meant = "something known of the task; repeatable"
    add("--feature", type=feature, action="append", default=[], metavar="NAME=VALUE", help=meant)
    usual = "what it would take without a scheduler, and takes if the store cannot be reached"
    add("--usual", metavar="OPTION", help=usual)
    add("--timeout", type=float, metavar="SECONDS", help="stop a command that runs longer; it has failed")
    add("--attempts", type=positive, default=1, metavar="N", help="after a failure, try other options, N in all (1)")
    add("--meter", choices=(*METERS, OWN), default="wall", help="the cost: seconds, those of CPU, or its own (wall)")
    rewards = parser.add_mutually_exclusive_group()
    rewards.add_argument("--reward-file", type=Path, metavar="FILE", help="the reward is the last line of this file")
    rewards.add_argument("--reward-line", action="store_true", help="the reward is the last line that it prints")
    lease = f"it is lost if it has not reported by then (--timeout and {SLACK:g}, or 3600)"
    add("--lease", type=float, metavar="SECONDS", help=lease)


def run_run(arguments: argparse.Namespace) -> int:
    """worthwhile run"""
    check(arguments)
    with Commands() as commands:
        runner = Runner(arguments, commands)
        try:
            scheduler, task = runner.decide()
            if scheduler is None or task is None:
                return runner.ran(as_option(arguments.usual), "").code
            with scheduler:
                code = runner.run(task)
                if arguments.json:
                    [line] = scheduler.tasks([task.id])
                    show(asdict(line) | {"code": code}, "", True)
            return code
        except Stopped as stopped:
            say(f"stopped by {stopped}")
            return 128 + stopped.number


def check(arguments: argparse.Namespace) -> None:
    """Refuse what would fail whatever the option is."""
    timeout, program = arguments.timeout, arguments.program[0]
    if timeout is not None and not 0.0 < timeout <= LONGEST:
        raise BadParameter(f"--timeout {timeout:g}: give a number of seconds above 0, at most {LONGEST:g}")
    if arguments.meter == OWN and not (arguments.reward_line or arguments.reward_file):
        raise BadParameter("--meter own: where does the command say its cost? Add --reward-line or --reward-file FILE")
    if PLACE not in program and shutil.which(program) is None:
        raise BadParameter(f"{program}: there is no such program; nothing was decided")


class Runner:
    """Runs a task's command, for one attempt after another."""

    def __init__(self, arguments: argparse.Namespace, commands: Commands) -> None:
        self.arguments, self.commands = arguments, commands
        self.numbers = 2 if arguments.meter == OWN else 1  # that a command says

    def decide(self) -> tuple[Scheduler | Client, Task] | tuple[None, None]:
        """The task; none if nobody could be asked and there is a usual option."""
        known, scheduler = self.arguments, None
        lease = known.lease
        if lease is None and known.timeout is not None:
            lease = known.timeout + GRACE + SLACK
        options, features = [as_option(text) for text in known.options], features_from(known.feature)
        usual = None if known.usual is None else as_option(known.usual)
        try:
            scheduler = opened(known, create=True)
            scheduler.lease = lease or scheduler.lease  # of further attempts, too
            return scheduler, scheduler.decide(
                known.kind, options, features=features, key=known.key, lease=lease, usual=usual
            )
        except (StoreError, ServiceError) as error:
            if scheduler is not None:
                scheduler.close()
            if usual is None:
                raise
            say(f"{error}; it runs with {shown(usual)}, and nothing of that is reported")
            return None, None

    def run(self, task: Task) -> int:
        """Until an attempt goes well, or there are no more; the exit code of the last one."""
        if task.state not in ("running", "expired"):
            say(f"{named(task)} has been done before: {task.state}")
            return int(task.state != "reported")
        while True:
            ran, failed = self.attempt(task)
            if not failed or task.attempt + 1 >= self.arguments.attempts:
                return ran.code
            try:
                task = task.again()
            except BadTask:  # no option is left
                return ran.code

    def attempt(self, task: Task) -> tuple[Ran, bool]:
        """How it ended, and whether the task has failed by that, so that it can be tried again."""
        ran, written = None, signature(self.arguments.reward_file)
        try:
            with task:
                ran = self.ran(task.option, task.id)
                if ran.stopped:
                    task.cancel()
                    say(f"{named(task)} cancelled")
                    return ran, False
                try:
                    task.reward, task.cost = self.outcome(ran, written)
                except BadFeedback as error:
                    cost = None if self.arguments.meter == OWN else ran.cost
                    task.fail(cost, str(error))
                    say(f"{named(task)} failed: {error}{cost_text(cost)}")
                    return ran, True
            say(f"{named(task)}: reward {digits(task.reward)}{cost_text(task.cost)}")
        except Error as error:
            if ran is None:
                raise
            say(f"{named(task)} has ended, and that could not be stored: {error}")
        return ran, False

    def ran(self, option: Option, id: str) -> Ran:
        """The command, with its option."""
        word = option if isinstance(option, str) else json.dumps(option)
        return self.commands.run(
            [part.replace(PLACE, word) for part in self.arguments.program],
            {"WORTHWHILE_OPTION": word, "WORTHWHILE_TASK": id},
            METERS.get(self.arguments.meter, METERS["wall"]),
            self.arguments.timeout,
            ERRORS if self.arguments.json else OUTPUT,
            self.arguments.reward_line,
        )

    def outcome(self, ran: Ran, written: tuple[int, ...]) -> tuple[float, float | None]:
        """Reward and cost; `BadFeedback` says why it has failed."""
        if ran.trouble:
            raise BadFeedback(ran.trouble)
        file = self.arguments.reward_file
        if file is not None:
            if signature(file) == written:
                raise BadFeedback(f"it did not write {file}")
            said = numbers(f"the last line of {file}", last_line(file), self.numbers)
        elif self.arguments.reward_line:
            said = numbers("the last line that it printed", ran.last_line, self.numbers)
        else:
            said = [1.0]
        return feedback("reward", said[0]), feedback("cost", said[1]) if len(said) > 1 else ran.cost


def named(task: Task) -> str:
    return f"task {task.id} ({task.kind}, {shown(task.option)})"


def cost_text(cost: float | None) -> str:
    return "" if cost is None else f", cost {digits(cost)}"


def numbers(where: str, line: str, count: int) -> Sequence[float]:
    """What a line says, and nothing else may be on it."""
    words = line.split()
    try:
        if len(words) == count:
            return [float(word) for word in words]
    except ValueError:
        pass
    wanted = "one number, the reward" if count == 1 else "two numbers, the reward and the cost"
    raise BadFeedback(f"{where} is {line[:80]!r}; it must be {wanted}")


def last_line(file: Path) -> str:
    """The last line of a file that is not blank; a pipe could keep us waiting for ever."""
    last = LastLine()
    try:
        if not file.is_file():
            raise BadFeedback(f"{file} is no file; the command must write its reward into one")
        with file.open("rb") as content:
            content.seek(max(0, os.fstat(content.fileno()).st_size - MOST_READ))
            last.take(content.read(MOST_READ))
    except OSError as error:
        raise BadFeedback(f"{file} cannot be read: {error.strerror}") from None
    return last.text()


def signature(file: Path | None) -> tuple[int, ...]:
    """Changes when somebody writes a file; empty if there is none."""
    try:
        state = os.stat(file) if file is not None else None
    except OSError:
        return ()
    return () if state is None else (state.st_mtime_ns, state.st_size, state.st_ino)
