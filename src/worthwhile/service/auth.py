"""Who may do what: tokens, their scopes, and requests that other web sites make in a browser's name."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from urllib.parse import SplitResult, urlsplit

from worthwhile.errors import AccessDenied, BadParameter, NotAllowed
from worthwhile.live.stores import Store
from worthwhile.live.stores.base import TokenRow, Transaction
from worthwhile.live.validation import check_text
from worthwhile.service.problems import NotJson

SCOPES = ("decide", "report", "read", "admin")  # admin may do everything
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
COOKIE = "worthwhile"
PREFIX = "ww_"
REFRESH_AFTER = 2.0  # seconds until the tokens are read again

Headers = Mapping[bytes, bytes]


def hash_of(token: str) -> str:
    """What the store keeps; a token has 256 random bits, so a plain hash is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


def create_token(store: Store, name: str, scopes: Sequence[str]) -> str:
    """A new token, shown this once."""
    check_text("token", name, BadParameter)
    for scope in scopes:
        if scope not in SCOPES:
            raise BadParameter(f"scope {scope!r}: there are {', '.join(SCOPES)}")
    if not scopes:
        raise BadParameter(f"token {name!r} has no scope; give at least one of {', '.join(SCOPES)}")
    token = PREFIX + secrets.token_urlsafe(32)

    def add(tx: Transaction) -> None:
        if any(row.name == name for row in tx.tokens()):
            raise BadParameter(f"there is a token {name!r} already; take another name")
        tx.add_token(TokenRow(hash_of(token), name, ",".join(dict.fromkeys(scopes)), time.time()))

    store.transact(add)
    return token


def list_tokens(store: Store) -> list[TokenRow]:
    """All tokens, revoked ones too."""
    return store.transact(lambda tx: tx.tokens())


def revoke_token(store: Store, name: str) -> None:
    """Let a token be of no use from now on."""

    def revoke(tx: Transaction) -> None:
        names = [row.name for row in tx.tokens()]
        if name not in names:
            raise BadParameter(f"no token {name!r}; there are: {', '.join(names) or 'none'}")
        tx.revoke_token(name, time.time())

    store.transact(revoke)


class Auth:
    """The tokens of a store as last read. A store that never had one is open, to this machine only."""

    def __init__(self, tokens: list[TokenRow]) -> None:
        self.put(tokens)

    def put(self, tokens: list[TokenRow]) -> None:
        self.tokens = tokens
        self.fresh_until = time.monotonic() + REFRESH_AFTER

    def is_open(self) -> bool:
        return not self.tokens

    def check(self, headers: Headers, scope: str, changes: bool) -> str:
        """Let a request pass, or say why not; the name of its token."""
        if self.is_open():
            check_host(headers)
        if changes:
            check_origin(headers)
        if scope == "none" or self.is_open():
            return ""
        row = self.row_of(token_in(headers, cookies=not changes))
        if not {scope, "admin"} & set(row.scopes.split(",")):
            raise NotAllowed(f"token {row.name!r} has scope {row.scopes}; this needs {scope}")
        return row.name

    def row_of(self, token: str) -> TokenRow:
        """What is known of a token; it is compared with every one, in constant time."""
        hashed = hash_of(token)
        same = [row for row in self.tokens if hmac.compare_digest(row.hash, hashed)]
        if not token:
            raise AccessDenied("no token; send the header Authorization: Bearer TOKEN")
        if not same or same[0].revoked is not None:
            raise AccessDenied("this token is not known here, or was revoked; `worthwhile token create` makes one")
        return same[0]


def token_in(headers: Headers, cookies: bool) -> str:
    """The token of a request; a browser's cookie is good for reading only."""
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    cookie = re.search(rf"(?:^|;\s*){COOKIE}=([\w-]+)", headers.get(b"cookie", b"").decode("latin-1"))
    return cookie[1] if cookie and cookies else ""


def check_host(headers: Headers) -> None:
    """Without tokens, only this machine's own names: another site's name could be made to point here."""
    host = headers.get(b"host", b"").decode("latin-1")
    if address_of(f"//{host}").hostname not in LOOPBACK:
        raise NotAllowed(
            f"host {host!r}: without tokens, only localhost is answered; make one: worthwhile token create"
        )


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


def address_of(text: str) -> SplitResult:
    """What an address names; nothing if it is none."""
    try:
        return urlsplit(text)
    except ValueError:
        return urlsplit("")
