"""One address of the service: what it takes and gives, and how a request to it is read, let in and answered."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from typing import Any, NamedTuple, TypeVar, get_type_hints
from urllib.parse import parse_qsl

import msgspec

from worthwhile.errors import BadRequest, Error, StoreError
from worthwhile.live.batch import Batch
from worthwhile.live.group_commit import Request
from worthwhile.live.stores.base import SessionRow, TokenRow
from worthwhile.service.auth import Auth, Caller, Headers, session_in
from worthwhile.service.dispatcher import Dispatcher, Dispatchers
from worthwhile.service.look_up import LookUp
from worthwhile.service.metrics import Metrics
from worthwhile.service.middleware import Receive, Scope, Send
from worthwhile.service.problems import RETRY_AFTER, TooLarge, bad_request, problem_of, status_of
from worthwhile.service.room import PIECE, Room
from worthwhile.service.tokens import entry

log = logging.getLogger(__name__)

LARGEST_BODY = 1 << 20  # bytes
LARGEST_BODY_OF_STRANGERS = 1 << 12  # where no token is asked for
MOST_DIGITS = 20  # of a length; Python refuses to read thousands of them
ONCE = {
    b"authorization", b"content-length", b"content-type", b"cookie", b"host", b"idempotency-key", b"origin",
    b"sec-fetch-site", b"transfer-encoding",
}  # fmt: skip
JSON = b"application/json"
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
SECURITY_HEADERS = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)  # for browsers
encode = msgspec.json.Encoder().encode
Answer = TypeVar("Answer")


class Service(NamedTuple):
    """What all addresses share."""

    dispatchers: Dispatchers
    auth: Auth
    metrics: Metrics
    allowed_policies: frozenset[str]  # import paths
    answers: Room  # bytes of large ones
    bodies: Room
    exports: Room
    read_access: LookUp[tuple[list[TokenRow], list[SessionRow]]]

    async def admit(self, headers: Headers, scope: str, changes: bool, scheduler: str | None = None) -> Caller:
        """Let a request pass, or say why not."""
        auth = self.auth
        if time.monotonic() > auth.fresh_until:
            auth.wait()  # meanwhile others go on with what is known
            await self.refresh()
        elif b"cookie" in headers and (session := session_in(headers)) and not auth.knows(session):
            await self.refresh()  # perhaps it was opened a moment ago, at another service on this store
        return auth.check(headers, scope, changes, scheduler)

    async def refresh(self) -> None:
        """Read tokens and sessions again; a store that is away changes nothing about who may do what."""
        try:
            self.auth.put(*await self.read_access())
        except Error as error:
            log.warning("the tokens could not be read again: %s", error)


class Call(NamedTuple):
    """A request, read and checked."""

    service: Service
    path: dict[str, str]  # its parameters
    query: Any
    body: Any
    headers: Headers
    caller: Caller

    async def dispatcher(self) -> Dispatcher:
        """That of the scheduler that the path names."""
        dispatchers, name = self.service.dispatchers, self.path["scheduler"]
        return dispatchers.open.get(name) or await dispatchers.find_or_create(name)

    async def do(self, request: Request) -> Any:
        """Ask the scheduler that the path names."""
        return await (await self.dispatcher()).do(request, self.service.dispatchers.patience)

    def record(self, batch: Batch, action: str, details: dict[str, Any]) -> None:
        """In the audit log, in the transaction that makes the change."""
        batch.tx.add_audit(entry(batch.header.now, self.caller.token, action, self.path["scheduler"], details))

    async def read(self, work: Callable[..., Answer], *arguments: Any) -> Answer:
        """Something that takes its time, in a thread."""
        return await self.service.dispatchers.read(work, *arguments)


class Reply(NamedTuple):
    """An answer that is not JSON, or has headers of its own."""

    content: bytes | AsyncIterator[bytes]
    content_type: bytes
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    finish: Callable[[], None] = lambda: None  # called when it is sent, or given up


class Endpoint(NamedTuple):
    """A method and a path, with everything that there is to say about them."""

    method: str
    path: str
    scope: str  # of the token it needs; "none" if anyone may
    run: Callable[[Call], Awaitable[Any]]
    summary: str
    body: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] | None = None
    content_types: tuple[str, ...] = ("application/json",)  # of the answer
    takes_key: bool = False  # in the header Idempotency-Key

    @property
    def answer(self) -> Any:
        """The type of an answer in JSON, as its function is annotated; None for any other."""
        answer = get_type_hints(self.run)["return"]
        return None if answer is Reply else answer


class EndpointApp:
    """An endpoint as an ASGI application."""

    def __init__(self, service: Service, endpoint: Endpoint) -> None:
        self.service, self.endpoint, self.path = service, endpoint, endpoint.path
        self.parameters = [segment[1:-1] for segment in endpoint.path.split("/") if segment.startswith("{")]
        self.changes = endpoint.method not in ("GET", "HEAD")
        self.decoder = msgspec.json.Decoder(endpoint.body) if endpoint.body else None
        self.largest = LARGEST_BODY if endpoint.scope != "none" else LARGEST_BODY_OF_STRANGERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            reply = as_reply(await self.answer(scope, receive))
            try:
                if isinstance(reply.content, bytes) and len(reply.content) > PIECE:
                    with self.service.answers.take(len(reply.content)):
                        await respond(send, scope, reply)
                else:
                    await respond(send, scope, reply)
            finally:
                reply.finish()
        except Error as error:
            await refuse(send, scope, error)

    async def answer(self, scope: Scope, receive: Receive) -> Any:
        """What the endpoint has to say."""
        headers, path = single(scope["headers"]), scope["path_params"]
        caller = await self.service.admit(headers, self.endpoint.scope, self.changes, path.get("scheduler"))
        scope["token"] = caller.token
        body = self.decoded(await self.read(headers, receive)) if self.decoder is not None else None
        query = None
        if self.endpoint.query is not None:
            query = converted(
                parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True), self.endpoint.query
            )
        return await self.endpoint.run(Call(self.service, path, query, body, headers, caller))

    async def read(self, headers: Headers, receive: Receive) -> bytes:
        """A request's body, if it is not too large, and not one of too many large ones."""
        announced = headers.get(b"content-length", b"0")
        if not announced.isdigit() or len(announced) > MOST_DIGITS or int(announced) > self.largest:
            raise TooLarge(self.largest)
        body, more = portion_of(await receive())
        if more:  # small ones come in one portion, most of the time
            body = await self.read_on(body, receive)
        if len(body) > self.largest:
            raise TooLarge(self.largest)
        return body

    async def read_on(self, body: bytes, receive: Receive) -> bytes:
        """A body to its end, or until it is too large; a large one needs room."""
        more = True
        while more and len(body) <= PIECE:
            portion, more = portion_of(await receive())
            body += portion
        if not more:
            return body
        with self.service.bodies.take():
            while more and len(body) <= self.largest:
                portion, more = portion_of(await receive())
                body += portion
        return body

    def decoded(self, body: bytes) -> Any:
        assert self.decoder is not None
        try:
            return self.decoder.decode(body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise bad_request(error) from None


def single(pairs: Sequence[tuple[bytes, bytes]]) -> Headers:
    """A request's headers; one that is there twice might be read in two ways, by a proxy and by us."""
    headers = dict(pairs)
    if len(headers) < len(pairs):
        names = Counter(name for name, _ in pairs)
        twice = sorted(name.decode("latin-1") for name in ONCE if names[name] > 1)
        if twice:
            raise BadRequest(f"{twice[0]}: this header is there twice; send it once")
    return headers


def converted(pairs: list[tuple[str, str]], query: type[msgspec.Struct]) -> Any:
    """A query's parameters."""
    try:
        return msgspec.convert(dict(pairs), query, strict=False)
    except msgspec.ValidationError as error:
        raise bad_request(error) from None


def portion_of(message: MutableMapping[str, Any]) -> tuple[bytes, bool]:
    """A portion of a body, and whether there is more."""
    if message["type"] == "http.disconnect":
        raise BadRequest("the client is gone")
    return message.get("body", b""), message.get("more_body", False)


def as_reply(answer: Any) -> Reply:
    return answer if isinstance(answer, Reply) else Reply(encode(answer), JSON)


async def respond(send: Send, scope: Scope, reply: Reply) -> None:
    """Send an answer, piece by piece: a connection takes the next one when the one before is read."""
    headers, content = [(b"content-type", reply.content_type), *reply.headers, *SECURITY_HEADERS], reply.content
    scope["status"] = reply.status  # for the log
    if not isinstance(content, bytes):
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await stream(send, scope, content)
        return
    headers.append((b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    content = b"" if scope["method"] == "HEAD" else content
    if len(content) <= PIECE:
        await send({"type": "http.response.body", "body": content})
        return
    for start in range(0, len(content), PIECE):
        more = start + PIECE < len(content)
        await send({"type": "http.response.body", "body": content[start : start + PIECE], "more_body": more})


async def stream(send: Send, scope: Scope, portions: AsyncIterator[bytes]) -> None:
    """Send an answer that is made as it goes; for nobody, it ends."""
    try:
        async for portion in portions:
            await send({"type": "http.response.body", "body": portion, "more_body": True})
            if scope.get("is_gone", bool)():
                return
    except Error as error:  # too late for another status: the client sees that the end is missing
        log.warning("%s %r broke off: %s", scope["method"], scope["path"], error)
        return
    await send({"type": "http.response.body", "body": b""})


def is_for_people(scope: Scope) -> bool:
    """Whether somebody looks at the answer; under /v1, programs do."""
    takes = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return scope["method"] == "GET" and b"text/html" in takes and not scope["path"].startswith(("/v1/", "/metrics"))


async def refuse(send: Send, scope: Scope, error: Error, more: Sequence[tuple[bytes, bytes]] = ()) -> None:
    """Send an error; where a browser asks for a page, as one."""
    status, problem, headers = status_of(error), problem_of(error), [*more]
    if status == 503:
        headers.append((b"retry-after", str(RETRY_AFTER).encode()))
        log.warning("%s %r: %s", scope["method"], scope["path"], error)
    if "error_page" in scope and is_for_people(scope):
        page: Reply = scope["error_page"](error)
        await respond(send, scope, page._replace(headers=tuple(headers)))
        return
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, StoreError) and status == 503:
        problem.detail = "the store cannot be used now; what was asked may or may not be stored: repeat it"
    await respond(send, scope, Reply(encode(problem), b"application/problem+json", status, tuple(headers)))
