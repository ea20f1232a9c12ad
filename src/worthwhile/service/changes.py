"""What an admin asks for: a scheduler's settings, and every change of them, with its entry in the audit log."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from worthwhile.errors import BadParameter, BadTask
from worthwhile.live.batch import Batch
from worthwhile.live.group_commit import Request
from worthwhile.live.labels import declared_of
from worthwhile.live.promotion import Promotion, promotion, share_to_set
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.settings import policy_words, settings_change
from worthwhile.live.validation import check_text, option_text, task_number
from worthwhile.policies.registry import check_importable
from worthwhile.service import schemas
from worthwhile.service.dispatcher import InitialSettings
from worthwhile.service.endpoint import Call

MOST_AUDITED = 10_000  # entries that are looked through for somebody who may see few of them


def check_policy(call: Call) -> None:
    """Refuse a policy by import path unless the operator has allowed it."""
    path = (call.body.policy or "").partition(",")[0]
    if ":" in path:
        check_importable(path, call.service.allowed_policies)


async def create_scheduler(call: Call) -> schemas.SchedulerFacts:
    check_policy(call)
    dispatchers, name = call.service.dispatchers, call.path["scheduler"]
    settings = InitialSettings(**msgspec.structs.asdict(call.body))
    new = name not in dispatchers.open and name not in await dispatchers.all_names()
    await dispatchers.find_or_create(name, settings)
    if new:
        details = msgspec.to_builtins(call.body)
        await call.do(Request(lambda batch: call.record(batch, "scheduler made", details)))
    return await read_scheduler(call)


async def read_scheduler(call: Call) -> schemas.SchedulerFacts:
    answer: schemas.SchedulerFacts = await call.do(Request(partial(facts, call.path["scheduler"])))
    return answer


def facts(name: str, batch: Batch) -> schemas.SchedulerFacts:
    """A scheduler's settings, and how far it has come."""
    settings, header, goal = batch.replica.settings, batch.header, batch.replica.goal
    trial, decode = settings.trial, msgspec.json.decode
    return schemas.SchedulerFacts(
        scheduler=name,
        policy=policy_words(batch.replica.policies.texts[settings.policy]),
        overhead=settings.overhead,
        failed_reward=settings.failed_reward,
        store_reasons=settings.store_reasons,
        goal=goal.goal,
        floor=goal.floors or goal.total_floor,
        budget=goal.budget,
        retired=[schemas.RetiredOption(decode(option), kind) for kind, option in settings.retired],
        tasks=header.tasks,
        reports=header.reports,
        baseline={kind or "": decode(option) for kind, option in trial.baseline},
        holdout=trial.holdout,
        explore=trial.explore,
        guard=trial.guard,
        guard_error=trial.guard_error,
        paused=trial.paused,
        reward_unit=settings.units[0],
        cost_unit=settings.units[1],
        declared={kind: [decode(text) for text in texts] for kind, texts in settings.declared.items()},
    )


async def changed(
    call: Call, action: str, change: Callable[[Scheduler, Batch], object], details: dict[str, Any] | None = None
) -> schemas.SchedulerFacts:
    """A scheduler after something about it has changed, and that is in the audit log."""
    await change_and_record(call, action, change, msgspec.to_builtins(call.body) if details is None else details)
    return await read_scheduler(call)


async def change_and_record(
    call: Call, action: str, change: Callable[[Scheduler, Batch], object], details: dict[str, Any]
) -> None:
    """Both in one transaction."""
    scheduler = (await call.dispatcher()).scheduler

    def both(batch: Batch) -> None:
        change(scheduler, batch)
        call.record(batch, action, details)

    await call.read(scheduler._transactor.do, both)


async def change_scheduler(call: Call) -> schemas.SchedulerFacts:
    check_policy(call)
    change = settings_change(**msgspec.structs.asdict(call.body))
    return await changed(call, "settings changed", lambda scheduler, batch: scheduler._transactor.change(change, batch))


async def retire(call: Call) -> schemas.SchedulerFacts:
    kind, option = call.body.kind, option_text(call.body.option)
    return await changed(call, "option retired", lambda _, batch: batch.retire(kind, option))


async def restore(call: Call) -> schemas.SchedulerFacts:
    """Also if it was not retired: whoever asks twice gets what was asked for."""
    kind, option = call.body.kind, option_text(call.body.option)
    with suppress(BadTask):
        return await changed(call, "option restored", lambda _, batch: batch.restore(kind, option))
    return await read_scheduler(call)


async def pause(call: Call) -> schemas.SchedulerFacts:
    """Let every task take its baseline from now on."""

    def hold_all_out(_: Scheduler, batch: Batch) -> None:
        trial = batch.replica.settings.trial
        if not trial.baseline and not trial.ever_held_out:
            raise BadParameter("paused, tasks take the baseline, and none is named; set one with baseline")
        batch.change(settings_change(holdout=1.0))

    return await changed(call, "paused", hold_all_out)


async def resume(call: Call) -> schemas.SchedulerFacts:
    """Hold out as many tasks as before the pause."""

    def hold_out_as_before(_: Scheduler, batch: Batch) -> None:
        trial = batch.replica.settings.trial
        if trial.paused and trial.before_pause is None:
            raise BadParameter("it has decided nothing yet; promote says with what share of the tasks to begin")
        if trial.paused:
            batch.change(settings_change(holdout=trial.before_pause))

    return await changed(call, "resumed", hold_out_as_before)


async def announce(call: Call) -> schemas.SchedulerFacts:
    kinds = [check_text("kind", kind) for kind in call.body.kinds]
    options = [option_text(option) for option in call.body.options]
    counts = {"kinds": len(kinds), "options": len(options)}
    return await changed(call, "names announced", lambda _, batch: batch.announce(kinds, options), counts)


async def declare(call: Call) -> schemas.SchedulerFacts:
    declared = declared_of(call.body.options)
    return await changed(call, "names declared", lambda _, batch: batch.declare(declared))


async def promote(call: Call) -> Promotion:
    """Set, and in the audit log, if a share is given."""
    scheduler, share = (await call.dispatcher()).scheduler, call.body.share
    holdout = share_to_set(share)
    standing = await call.read(scheduler.promote)
    if holdout is None:
        return standing
    change, details = settings_change(holdout=holdout), {"share": share}
    await change_and_record(call, "promoted", lambda _, batch: batch.change(change), details)
    summary = await call.read(scheduler.summary)
    return promotion(summary.gain, was_set=True)


async def forget(call: Call) -> schemas.Taken:
    """Take what may be personal out of tasks: of all, or of none if one is not known; asked twice, it is the same."""
    numbers = list(dict.fromkeys(map(task_number, call.body.tasks)))
    details = {"tasks": list(map(str, numbers))}
    await change_and_record(call, "tasks forgotten", lambda _, batch: batch.forget(*numbers), details)
    call.service.dispatchers.forget_explanations(call.path["scheduler"])
    return schemas.Taken(len(numbers))


async def audit(call: Call) -> list[schemas.AuditEntry]:
    """What a token for some schedulers may see is what was done to those."""
    return await audited(call, call.query.count, call.caller.schedulers)


async def audited(call: Call, count: int, schedulers: frozenset[str] | None) -> list[schemas.AuditEntry]:
    """The latest entries about some schedulers, or about everything."""
    dispatchers = call.service.dispatchers
    read = count if schedulers is None else MOST_AUDITED
    rows = await dispatchers.ask_store(dispatchers.transact, lambda tx: tx.audit(read))
    seen = [row for row in rows if schedulers is None or row.scheduler in schedulers]
    return [
        msgspec.convert(row._asdict() | {"details": msgspec.json.decode(row.details)}, schemas.AuditEntry)
        for row in seen[:count]
    ]
