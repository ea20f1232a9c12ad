"""One address of the service: what it takes and gives, and how a request to it is read, let in and answered."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from worthwhile.errors import Error, StoreError
from worthwhile.service.auth import Access, Headers
from worthwhile.service.dispatcher import Desk, Desks
from worthwhile.service.metrics import Metrics
from worthwhile.service.middleware import Receive, Scope, Send
from worthwhile.service.problems import RETRY_AFTER, TooLarge, in_our_words, problem_of, status_of

log = logging.getLogger(__name__)

LARGEST = 1 << 20  # bytes of a body
JSON = b"application/json"
encode = msgspec.json.Encoder().encode


class Service(NamedTuple):
    """What all addresses share."""

    desks: Desks
    access: Access
    metrics: Metrics


class Call(NamedTuple):
    """A request, read and checked."""

    service: Service
    names: dict[str, str]  # in the path
    query: Any
    body: Any
    headers: Headers

    async def desk(self) -> Desk:
        """The desk of the scheduler that the path names."""
        return await self.service.desks.find(self.names["scheduler"])


class Reply(NamedTuple):
    """An answer that is not JSON, or has headers of its own."""

    content: bytes | AsyncIterator[bytes]
    kind: bytes
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Endpoint(NamedTuple):
    """A method and a path, with everything that there is to say about them."""

    method: str
    path: str
    scope: str  # of the token it needs; "none" if anyone may
    run: Callable[[Call], Awaitable[Any]]
    says: str
    takes: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] | None = None
    gives: Any = None
    status: int = 200
    kinds: tuple[str, ...] = ("application/json",)  # of the answer


class Answer:
    """An endpoint as an ASGI application."""

    def __init__(self, service: Service, endpoint: Endpoint) -> None:
        self.service, self.endpoint, self.path = service, endpoint, endpoint.path
        self.changes = endpoint.method not in ("GET", "HEAD")
        self.decoder = msgspec.json.Decoder(endpoint.takes) if endpoint.takes else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await respond(send, scope, await self.answer(scope, receive), self.endpoint.status)
        except Error as reason:
            await refuse(send, scope, reason)

    async def answer(self, scope: Scope, receive: Receive) -> Any:
        """What the endpoint has to say."""
        headers, access = dict(scope["headers"]), self.service.access
        if time.monotonic() > access.fresh_until:
            await self.refresh()
        scope["token"] = access.check(headers, self.endpoint.scope, self.changes)
        body = self.decoded(await read(headers, receive)) if self.decoder is not None else None
        query = None
        if self.endpoint.query is not None:
            query = converted(parse_qsl(scope["query_string"].decode("latin-1")), self.endpoint.query)
        return await self.endpoint.run(Call(self.service, scope["path_params"], query, body, headers))

    def decoded(self, body: bytes) -> Any:
        assert self.decoder is not None
        try:
            return self.decoder.decode(body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as reason:
            raise in_our_words(reason) from None

    async def refresh(self) -> None:
        """Read the tokens again; a store that is away changes nothing about who may do what."""
        access, desks = self.service.access, self.service.desks
        access.put(access.tokens)  # meanwhile others go on with what is known
        try:
            access.put(await desks.look(desks.tokens))
        except Error as reason:
            log.warning("the tokens could not be read again: %s", reason)


def converted(pairs: list[tuple[str, str]], kind: type[msgspec.Struct]) -> Any:
    """A query's parameters."""
    try:
        return msgspec.convert(dict(pairs), kind, strict=False)
    except msgspec.ValidationError as reason:
        raise in_our_words(reason) from None


async def read(headers: Headers, receive: Receive) -> bytes:
    """A request's body, if it is not too large."""
    announced = headers.get(b"content-length", b"0")
    if not announced.isdigit() or int(announced) > LARGEST:
        raise TooLarge(f"the body has more than {LARGEST} bytes; send less at once")
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise TooLarge("the client is gone")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > LARGEST:
            raise TooLarge(f"the body has more than {LARGEST} bytes; send less at once")
    return body


async def respond(send: Send, scope: Scope, found: Any, status: int) -> None:
    """Send an answer."""
    if not isinstance(found, Reply):
        found = Reply(b"" if found is None else encode(found), JSON, status)
    headers = [(b"content-type", found.kind), *found.headers]
    if isinstance(found.content, bytes):
        headers.append((b"content-length", str(len(found.content)).encode()))
        await send({"type": "http.response.start", "status": found.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else found.content})
        return
    await send({"type": "http.response.start", "status": found.status, "headers": headers})
    try:
        async for portion in found.content:
            await send({"type": "http.response.body", "body": portion, "more_body": True})
    except Error as reason:  # too late for another status: the client sees that the end is missing
        log.warning("%s %r broke off: %s", scope["method"], scope["path"], reason)
        return
    await send({"type": "http.response.body", "body": b""})


async def refuse(send: Send, scope: Scope, reason: Error) -> None:
    """Send an error."""
    status = status_of(reason)
    extra: list[tuple[bytes, bytes]] = []
    if status == 503:
        extra.append((b"retry-after", str(RETRY_AFTER).encode()))
        log.warning("%s %r: %s", scope["method"], scope["path"], reason)
    if status == 401:
        extra.append((b"www-authenticate", b"Bearer"))
    problem = problem_of(reason)
    if isinstance(reason, StoreError) and status == 503:
        problem.detail = "the store cannot be used now; what was asked may or may not be stored: repeat it"
    await respond(send, scope, Reply(encode(problem), b"application/problem+json", status, tuple(extra)), status)
