"""Signing in and out: a browser gets a session for a token, in a cookie that scripts cannot read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps

from worthwhile.errors import AccessDenied, Error, NotAllowed
from worthwhile.service.auth import COOKIE, session_in
from worthwhile.service.dashboard.rendering import error_page, render
from worthwhile.service.endpoint import Call, Reply
from worthwhile.service.problems import status_of
from worthwhile.service.schemas import Message, Text
from worthwhile.service.tokens import SESSION, hash_of, keep_session, new_session

Page = Callable[[Call], Awaitable[Reply]]


class Login(Message):
    """A token; the browser gets a session for it, in a cookie that scripts cannot read."""

    token: Text


def behind_tls(call: Call) -> bool:
    return call.headers.get(b"x-forwarded-proto") == b"https"


def signed_in(call: Call) -> bool:
    """Whether there is a session to end."""
    return bool(call.caller.token and session_in(call.headers))


async def log_in(call: Call) -> Reply:
    """Open a session on this site only; the browser never keeps the token."""
    auth, dispatchers = call.service.auth, call.service.dispatchers
    caller = auth.check({b"authorization": b"Bearer " + call.body.token.encode()}, "read", changes=False)
    secret, session = new_session(caller.token)
    await dispatchers.ask_store(dispatchers.transact, lambda tx: keep_session(tx, session))
    auth.sessions[session.hash] = session
    return with_cookie(call, secret, int(SESSION))


async def log_out(call: Call) -> Reply:
    """End the browser's session, here and wherever else its cookie may be."""
    auth, dispatchers = call.service.auth, call.service.dispatchers
    ended = hash_of(session_in(call.headers))
    if ended in auth.sessions:
        await dispatchers.ask_store(dispatchers.transact, lambda tx: tx.end_sessions([ended]))
        auth.sessions.pop(ended, None)
    return with_cookie(call, "", 0)


def with_cookie(call: Call, value: str, seconds: int) -> Reply:
    secure = "; Secure" if behind_tls(call) else ""
    cookie = f"{COOKIE}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}"
    return Reply(b"{}", b"application/json", headers=((b"set-cookie", cookie.encode()),))


def guarded(page: Page) -> Page:
    """People see a form for their token, or what is wrong, as a page."""

    @wraps(page)
    async def answer(call: Call) -> Reply:
        session = bool(session_in(call.headers))
        try:
            caller = await call.service.admit(call.headers, "read", False, call.path.get("scheduler"))
        except NotAllowed as error:
            return error_page(error, session)
        except AccessDenied as error:
            return render("login.html", status_of(error), problem=str(error) if session else "")
        try:
            return await page(call._replace(caller=caller))
        except Error as error:
            return error_page(error, session)

    return answer
