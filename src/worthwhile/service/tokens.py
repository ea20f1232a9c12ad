"""What a store keeps of who may use it: tokens, and the sessions of browsers that were opened with one."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Sequence
from typing import Any

from worthwhile.errors import BadParameter
from worthwhile.live.stores import Store
from worthwhile.live.stores.base import AuditRow, SessionRow, TokenRow, Transaction
from worthwhile.live.validation import check_text

SCOPES = ("decide", "report", "read", "admin")  # admin may do everything
PREFIX = "ww_"
SESSION = 12 * 3600.0  # seconds
MOST_SESSIONS = 100  # of a token; the oldest makes room


def hash_of(secret: str) -> str:
    """What the store keeps; tokens and sessions have 256 random bits, so a plain hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def create_token(
    store: Store, name: str, scopes: Sequence[str], schedulers: Sequence[str] = (), lifetime: float | None = None
) -> str:
    """A new token, shown this once: for these schedulers or all, for so many seconds or until it is revoked."""
    check_text("token", name, BadParameter)
    for scope in scopes:
        if scope not in SCOPES:
            raise BadParameter(f"scope {scope!r}: there are {', '.join(SCOPES)}")
    if not scopes:
        raise BadParameter(f"token {name!r} has no scope; give at least one of {', '.join(SCOPES)}")
    for scheduler in schedulers:
        check_text("scheduler", scheduler, BadParameter)
    token, now = PREFIX + secrets.token_urlsafe(32), time.time()
    only = json.dumps(list(dict.fromkeys(schedulers)), ensure_ascii=False) if schedulers else None
    expires = None if lifetime is None else now + lifetime
    row = TokenRow(hash_of(token), name, ",".join(dict.fromkeys(scopes)), now, None, only, expires)

    def add(tx: Transaction) -> None:
        if any(other.name == name for other in tx.tokens()):
            raise BadParameter(f"there is a token {name!r} already; take another name")
        tx.add_token(row)
        tx.add_audit(entry(now, None, "token created", None, token_facts(row)))

    store.transact(add)
    return token


def list_tokens(store: Store) -> list[TokenRow]:
    """All tokens, revoked ones too."""
    return store.transact(lambda tx: tx.tokens())


def revoke_token(store: Store, name: str) -> None:
    """Let a token be of no use from now on, and with it every browser that is logged in with it."""

    def revoke(tx: Transaction) -> None:
        names, now = [row.name for row in tx.tokens()], time.time()
        if name not in names:
            raise BadParameter(f"no token {name!r}; there are: {', '.join(names) or 'none'}")
        tx.revoke_token(name, now)
        tx.end_sessions([row.hash for row in tx.sessions() if row.token == name])
        tx.add_audit(entry(now, None, "token revoked", None, {"name": name}))

    store.transact(revoke)


def token_facts(row: TokenRow) -> dict[str, Any]:
    """A token for people and programs, without its hash."""
    only = None if row.schedulers is None else json.loads(row.schedulers)
    return {"name": row.name, "scopes": row.scopes.split(","), "schedulers": only, "expires": row.expires}


def entry(now: float, token: str | None, action: str, scheduler: str | None, details: dict[str, Any]) -> AuditRow:
    """An entry of the audit log."""
    return AuditRow(now, token, action, scheduler, json.dumps(details, ensure_ascii=False))


def new_session(token: str) -> tuple[str, SessionRow]:
    """What a browser keeps instead of a token, and what the store keeps of it."""
    secret, now = secrets.token_urlsafe(32), time.time()
    return secret, SessionRow(hash_of(secret), token, now, now + SESSION)


def keep_session(tx: Transaction, session: SessionRow) -> None:
    """Add a session; those that have expired are forgotten, and the oldest if a token has too many."""
    sessions = tx.sessions()
    expired = [row.hash for row in sessions if row.expires <= session.created]
    own = [row.hash for row in sessions if row.token == session.token and row.hash not in expired]
    tx.end_sessions([*expired, *own[: max(0, len(own) + 1 - MOST_SESSIONS)]])
    tx.add_session(session)
