"""Errors over HTTP: one table of statuses, one form (problem+json), the library's own messages."""

from __future__ import annotations

import msgspec

from worthwhile import errors
from worthwhile.errors import AccessDenied, BadInput, BadRequest, Error, Overloaded, ServiceError, StoreError
from worthwhile.service.schemas import Problem

RETRY_AFTER = 1  # seconds


class TooLarge(BadRequest):
    """A body beyond the limit."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the body has more than {most} bytes; send less at once")


class NotJson(BadRequest):
    """A content type that this service does not read."""


class HttpError(Error):
    """Nothing at this address, or not for this method; or a fault of ours."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


STATUS: dict[type[Error], int] = {  # the first class that fits
    errors.NotAllowed: 403,
    AccessDenied: 401,
    errors.UnknownScheduler: 404,
    errors.UnknownTask: 404,
    errors.AlreadyReported: 409,
    errors.AlreadyFailed: 409,
    errors.AlreadyCancelled: 409,
    TooLarge: 413,
    NotJson: 415,
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


def status_of(error: Error) -> int:
    """The HTTP status of an error."""
    return error.status if isinstance(error, HttpError) else status_of_class(type(error))


def status_of_class(error: type[Error]) -> int:
    return next(status for known, status in STATUS.items() if issubclass(error, known))


def problem_of(error: Error) -> Problem:
    """An error as it goes over the wire."""
    title, status = type(error).__name__, status_of(error)
    if type(error).__module__ != errors.__name__:
        title = "BadRequest" if status < 500 else "ServiceError"
    return Problem(type=f"/docs#{title}", title=title, status=status, detail=" ".join(str(error).split()))


def bad_request(error: Exception) -> BadRequest:
    """What the decoder minds, as an error like all others."""
    if isinstance(error, msgspec.ValidationError):
        return BadRequest(f"{error}; /docs shows what is expected")
    if isinstance(error, RecursionError):
        return BadRequest("the JSON is nested too deeply")
    return BadRequest(f"this is no JSON: {error}")


def error_of(problem: Problem) -> Error:
    """The other way round, for clients."""
    error = getattr(errors, problem.title, None)
    if not isinstance(error, type) or not issubclass(error, Error) or error is errors.MissingExtra:
        error = ServiceError
    return error(problem.detail)
