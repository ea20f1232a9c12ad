"""Who may do what: tokens, their scopes, and requests that other web sites make in a browser's name."""

from __future__ import annotations

import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from worthwhile.errors import AccessDenied, NotAllowed
from worthwhile.live.stores.base import SessionRow, TokenRow
from worthwhile.service.problems import NotJson
from worthwhile.service.tokens import hash_of

LOOPBACK = {"localhost", "127.0.0.1", "::1"}
COOKIE = "worthwhile"
LONGEST_HOST = 300  # bytes: a name has at most 253
REFRESH_AFTER = 2.0  # seconds until the tokens are read again

Headers = Mapping[bytes, bytes]


class Caller(NamedTuple):
    """Who asks: the name of the token, and which schedulers it is for."""

    token: str = ""
    schedulers: frozenset[str] | None = None  # None: all
    admin: bool = False  # may change settings

    def may_use(self, scheduler: str) -> bool:
        return self.schedulers is None or scheduler in self.schedulers


class Auth:
    """Tokens and sessions as last read. A store that never had a token is open, to this machine only."""

    def __init__(self, tokens: Sequence[TokenRow], sessions: Sequence[SessionRow]) -> None:
        self.put(tokens, sessions)

    def put(self, tokens: Sequence[TokenRow], sessions: Sequence[SessionRow]) -> None:
        self.tokens = tokens
        self.sessions = {row.hash: row for row in sessions}
        self.wait()

    def wait(self) -> None:
        """What is known is good for a while."""
        self.fresh_until = time.monotonic() + REFRESH_AFTER

    def is_open(self) -> bool:
        return not self.tokens

    def check(self, headers: Headers, scope: str, changes: bool, scheduler: str | None = None) -> Caller:
        """Let a request pass, or say why not."""
        if self.is_open():
            check_host(headers)
        if changes:
            check_origin(headers)
        if scope == "none" or self.is_open():
            return Caller(admin=self.is_open())
        # a browser's cookie is good for reading and, with an admin's token, for the buttons of our own pages
        session = session_in(headers) if not changes or (scope == "admin" and is_own_page(headers)) else ""
        row = self.row_of_session(session) if session else self.row_of(bearer_in(headers))
        if not {scope, "admin"} & set(row.scopes.split(",")):
            raise NotAllowed(f"token {row.name!r} has scope {row.scopes}; this needs {scope}")
        schedulers = None if row.schedulers is None else frozenset(json.loads(row.schedulers))
        caller = Caller(row.name, schedulers, "admin" in row.scopes.split(","))
        if scheduler is not None and not caller.may_use(scheduler):
            raise NotAllowed(f"token {row.name!r} is not for scheduler {scheduler!r}")
        return caller

    def row_of(self, token: str) -> TokenRow:
        """What is known of a token; it is compared with every one, in constant time."""
        hashed = hash_of(token)
        same = [row for row in self.tokens if hmac.compare_digest(row.hash, hashed)]
        if not token:
            raise AccessDenied("no token; send the header Authorization: Bearer TOKEN")
        if not same:
            raise AccessDenied("this token is not known here, or was revoked; `worthwhile token create` makes one")
        return good(same[0])

    def row_of_session(self, session: str) -> TokenRow:
        """The token that a browser logged in with."""
        kept = self.sessions.get(hash_of(session))
        same = [row for row in self.tokens if kept is not None and row.name == kept.token]
        if kept is None or kept.expires <= time.time() or not same:
            raise AccessDenied("this session has ended; log in again")
        return good(same[0])

    def knows(self, session: str) -> bool:
        return hash_of(session) in self.sessions


def good(row: TokenRow) -> TokenRow:
    """A token, unless its time is over."""
    if row.revoked is not None:
        raise AccessDenied("this token is not known here, or was revoked; `worthwhile token create` makes one")
    if row.expires is not None and row.expires <= time.time():
        day = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(row.expires))
        raise AccessDenied(f"token {row.name!r} expired at {day}; `worthwhile token create` makes a new one")
    return row


def bearer_in(headers: Headers) -> str:
    """The token of a request."""
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def session_in(headers: Headers) -> str:
    """The session of a request that has no token."""
    if b"cookie" not in headers or bearer_in(headers):
        return ""
    cookie = re.search(rf"(?:^|;\s*){COOKIE}=([\w-]+)", headers.get(b"cookie", b"").decode("latin-1"))
    return cookie[1] if cookie else ""


def check_host(headers: Headers) -> None:
    """Without tokens, only this machine's own names: another site's name could be made to point here."""
    host = headers.get(b"host", b"")
    if len(host) > LONGEST_HOST or not is_this_machine(host):
        name = host.decode("latin-1")
        raise NotAllowed(
            f"host {name!r}: without tokens, only localhost is answered; make one: worthwhile token create"
        )


@lru_cache
def is_this_machine(host: bytes) -> bool:
    return address_of(f"//{host.decode('latin-1')}").hostname in LOOPBACK


def check_origin(headers: Headers) -> None:
    """What changes something must be JSON, which no other site's form can send, and from no other site's page."""
    content_type = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise NotJson(f"content type {content_type or 'missing'!r}; send application/json")
    origin, host = headers.get(b"origin"), headers.get(b"host", b"").decode("latin-1")
    if origin is not None and (not host or address_of(origin.decode("latin-1")).netloc != host):
        raise NotAllowed(f"origin {origin.decode('latin-1')!r}: other sites' pages cannot change anything here")
    if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
        raise NotAllowed("other sites' pages cannot change anything here")


def is_own_page(headers: Headers) -> bool:
    """Whether a browser says so: `check_origin` has refused all that say otherwise."""
    return b"origin" in headers or headers.get(b"sec-fetch-site") == b"same-origin"


def address_of(text: str) -> SplitResult:
    """What an address names; nothing if it is none."""
    try:
        return urlsplit(text)
    except ValueError:
        return urlsplit("")
