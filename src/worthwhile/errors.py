"""Every error that worthwhile raises on purpose.

Error
├── BadInput              (also a ValueError)
│   ├── BadProblem        a problem that makes no sense, or a problem file that cannot be read
│   ├── BadTable          a recorded table that cannot be replayed
│   ├── BadImages         a folder of images that cannot be trained on
│   ├── BadParameter      a horizon, seed, delay or policy parameter out of range
│   ├── BadTask           a task that cannot be decided: its kind, its options or its key
│   │   └── Undeclared    a kind or an option that was not declared, where others were
│   ├── BadFeedback       a reward or a cost that cannot be learned from
│   └── BadRequest        a request over HTTP that cannot be read
├── UnknownTask           no task of that number in this scheduler
├── AlreadyReported       a second report with other values
├── AlreadyFailed         a report for a task that has failed
├── AlreadyCancelled      a report for a task that was cancelled
├── StoreError            a store that cannot be reached, read or written
│   ├── StoreReplaced     a store whose file was deleted or replaced while it was in use
│   └── UnknownScheduler  no scheduler of that name in the store
├── AccessDenied          no token, or one that is not known, was revoked or has expired
│   └── NotAllowed        a token without the scope that a request needs; a policy that a service may not import
├── ServiceError          a service that cannot be reached, or gives no answer
│   └── Overloaded        a service with more to do than it can keep up with
├── WorkerLost            the process that ran a task has ended before the task did
├── TimedOut              a task that took longer than it may
├── WarmUpFailed          what was to run before the first task of a process could not
├── UnknownPolicy         no policy of that name, or nothing at that import path
├── CannotCompile         a policy or world that numba cannot turn into machine code
├── MissingExtra          an optional dependency that this feature needs
└── BrokenRule            a policy, environment or store that fails its conformance check

A message says what is wrong, with which value, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Iterable


class Error(Exception):
    """Base of all errors raised by worthwhile."""


class BadInput(Error, ValueError):
    """A value from the outside that cannot be used."""


class BadProblem(BadInput):
    """A problem that makes no sense, or a problem file that cannot be read."""


class BadTable(BadInput):
    """A recorded table that cannot be replayed."""


class BadImages(BadInput):
    """A folder of images that cannot be trained on."""


class BadParameter(BadInput):
    """A horizon, seed, delay or policy parameter out of range."""


class BadTask(BadInput):
    """A task that cannot be decided: its kind, its options or its key."""


class Undeclared(BadTask):
    """A kind or an option that was not declared, where others were: most likely a typing error."""


class BadFeedback(BadInput):
    """A reward or a cost that cannot be learned from."""


class BadRequest(BadInput):
    """A request over HTTP that cannot be read: its JSON, its fields, its size or its content type."""


class UnknownTask(Error):
    """No task of that number in this scheduler."""


class AlreadyReported(Error):
    """A second report with other values; a report counts once."""


class AlreadyFailed(Error):
    """A report for a task that has failed, or a second failure at another cost."""


class AlreadyCancelled(Error):
    """A report for a task that was cancelled."""


class StoreError(Error):
    """A store that cannot be reached, read or written; nothing of what was asked is acknowledged."""

    again = False  # other transactions were in the way: nothing was stored, and the same may well succeed at once
    waited = False  # for as long as anybody should: those who wait behind this call are told the same


class StoreReplaced(StoreError):
    """A store whose file was deleted, or replaced by another one, while it was in use."""


class UnknownScheduler(StoreError):
    """No scheduler of that name in the store."""


class AccessDenied(Error):
    """No token, or one that is not known, was revoked or has expired."""


class NotAllowed(AccessDenied):
    """A token without the scope that a request needs, or a policy that a service may not import."""


class ServiceError(Error):
    """A service that cannot be reached, or gives no answer; whether it did what was asked is not known."""


class Overloaded(ServiceError):
    """A service with more to do than it can keep up with; what was asked can be asked again."""


class WorkerLost(Error):
    """The process that ran a task has ended before the task did: killed, crashed, out of memory."""

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        super().__init__(message)
        self.seconds = seconds  # for which the task had run


class TimedOut(Error, TimeoutError):
    """A task that took longer than it may; its process was stopped where that is possible."""

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        super().__init__(message)
        self.seconds = seconds


class WarmUpFailed(Error):
    """What was to run once in every process, before its first task, could not."""


class UnknownPolicy(Error):
    """No policy of that name, or nothing at that import path."""


class CannotCompile(Error):
    """A policy or world that numba cannot turn into machine code."""


class MissingExtra(Error):
    """An optional dependency that this feature needs is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional dependency: pip install 'worthwhile[{extra}]'")


class BrokenRule(Error, AssertionError):
    """A policy, environment or store that fails its conformance check."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint naming the nearest known word, or listing all of them."""
    import difflib

    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else "known: " + ", ".join(sorted(names))
