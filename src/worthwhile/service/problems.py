"""Errors over HTTP: one table of statuses, one form (problem+json), the library's own messages."""

from __future__ import annotations

import msgspec

from worthwhile import errors
from worthwhile.errors import AccessDenied, BadInput, BadRequest, Error, Overloaded, ServiceError, StoreError
from worthwhile.service.schemas import Problem

RETRY_AFTER = 1  # seconds
STATUS: dict[type[Error], int] = {  # the first class that fits
    errors.NotAllowed: 403,
    AccessDenied: 401,
    errors.UnknownScheduler: 404,
    errors.UnknownTask: 404,
    errors.AlreadyReported: 409,
    errors.AlreadyCancelled: 409,
    BadRequest: 400,
    BadInput: 422,
    errors.UnknownPolicy: 422,
    errors.CannotCompile: 422,
    errors.MissingExtra: 422,
    errors.BrokenRule: 422,
    Overloaded: 503,
    ServiceError: 503,
    StoreError: 503,
    Error: 500,
}


class TooLarge(BadRequest):
    """A body beyond the limit."""


class NotJson(BadRequest):
    """A content type that this service does not read."""


class NoSuchPlace(Error):
    """Nothing at this address, or not for this method."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def status_of(reason: Error) -> int:
    """The HTTP status of an error."""
    if isinstance(reason, NoSuchPlace):
        return reason.status
    if isinstance(reason, TooLarge | NotJson):
        return 413 if isinstance(reason, TooLarge) else 415
    return status_of_class(type(reason))


def status_of_class(kind: type[Error]) -> int:
    return next(status for known, status in STATUS.items() if issubclass(kind, known))


def problem_of(reason: Error) -> Problem:
    """An error as it goes over the wire."""
    title, status = type(reason).__name__, status_of(reason)
    if type(reason).__module__ != errors.__name__:
        title = "BadRequest" if status < 500 else "ServiceError"
    return Problem(type=f"/docs#{title}", title=title, status=status, detail=" ".join(str(reason).split()))


def in_our_words(reason: Exception) -> Error:
    """What the decoder minds, as an error like all others."""
    if isinstance(reason, msgspec.ValidationError):
        return BadRequest(f"{reason}; /docs shows what is expected")
    if isinstance(reason, RecursionError):
        return BadRequest("the JSON is nested too deeply")
    return BadRequest(f"this is no JSON: {reason}")


def error_of(problem: Problem) -> Error:
    """The other way round, for clients."""
    kind = getattr(errors, problem.title, None)
    if not isinstance(kind, type) or not issubclass(kind, Error) or kind is errors.MissingExtra:
        kind = ServiceError
    return kind(problem.detail)
