"""Requests byte by byte, as no well-behaved client sends them."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence
from contextlib import suppress

from waiting import NET

METHODS = [
    b"GET", b"GET", b"GET", b"POST", b"POST", b"POST", b"PUT", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS", b"PROPFIND",
]  # fmt: skip
PATHS = [
    b"/", b"/login", b"/logout", b"/docs", b"/static/style.css", b"/metrics", b"/v1/health", b"/v1/ready", b"/v1/audit",
    b"/v1/schedulers", b"/v1/openapi.json", b"/schedulers/default", b"/schedulers/default/live",
    b"/schedulers/default/tasks/1", b"/v1/schedulers/default", b"/v1/schedulers/default/tasks", b"/v1/schedulers/%00",
    b"/v1/schedulers/default/tasks/1/report", b"/v1/schedulers/default/export", b"//", b"/%", b"/%ff",
    b"http://localhost/v1/health",
]  # fmt: skip
QUERIES = [b"", b"?", b"?count=1", b"?kinds=-1", b"?kind=%00", b"?ids=1,,", b"?after=" + b"9" * 5000, b"?&&=%"]
NAMES = [
    b"Host", b"Origin", b"Authorization", b"Cookie", b"Content-Type", b"Sec-Fetch-Site", b"Idempotency-Key", b"Expect",
    b"X-Forwarded-For", b"X-Forwarded-Proto", b"Accept", b"Range", b"If-None-Match", b"TE", b"Trailer",
    b"Content-Encoding", b"X",
]  # fmt: skip
VALUES = [
    b"", b"localhost", b"localhost:80", b"[::1", b"[::1]:80", b"http://[", b"http://[::1", b"http://localhost", b"null",
    b"http://localhost:99999999", b"http://\xff", b"//", b"Bearer", b"Bearer ww_x", b"bearer \xff", b"Basic eDp5",
    b"worthwhile=", b"worthwhile=abc", b"worthwhile=\xff; a", b"application/json", b"application/json; charset=\xff",
    b"text/html", b"same-origin", b"cross-site", b"100-continue", b"websocket", b"h2c", b"1.2.3.4", b"::1", b"https",
    b"https, http", b"gzip", b"bytes=0-", b"a" * 5000, b"\t x \t", b"%s%n", b"-1",
]  # fmt: skip
BODIES = [
    b"", b"{}", b"[]", b"null", b"{", b'{"token": "x"}', b'{"token": "\\u0000"}', b'{"token": "\xc3\xbc"}',
    b'{"token": "\\ud800"}', b"[" * 5000, b"\xff" * 10, b'{"kind": "a", "options": [1]}', b'{"token": 1e999}',
]  # fmt: skip
# what the parser of HTTP does not let pass, most of it
BROKEN_METHODS = [b"CONNECT", b"get", b"", b"\x16\x03\x01"]
BROKEN_PATHS = [b"*", b"http://[", b"/a b", b"/\xff", b"localhost:80", b"", b"http://[::1/"]
BROKEN_FIELDS = [(b"", b"x"), (b"a b", b"x"), (b"\xff", b"x"), (b"X", b"\x00"), (b"X", b"a\r\nb"), (b"Upgrade", b"h2c")]
BROKEN_LENGTHS = [
    b"-1",
    b"+5",
    b"0x5",
    b"5 5",
    b"9" * 30,
    b"0" * 5000 + b"2",
    b"1e3",
    b"",
    b"5",
    b"7\r\nContent-Length: 9",
]


def ask(port: int, request: bytes) -> bytes:
    """All that comes back until the service closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=NET) as connection:
        connection.sendall(request)
        answer = b""
        while portion := connection.recv(1 << 16):
            answer += portion
    return answer


def send_only(port: int, request: bytes) -> None:
    """Hang up after it: the service may be waiting for more."""
    with socket.create_connection(("127.0.0.1", port), timeout=NET) as connection, suppress(ConnectionError):
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass


def chunked(body: bytes, trailers: Sequence[tuple[bytes, bytes]]) -> bytes:
    chunk = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
    return chunk + b"0\r\n" + fields(trailers) + b"\r\n"


def fields(pairs: Sequence[tuple[bytes, bytes]]) -> bytes:
    return b"".join(name + b": " + value + b"\r\n" for name, value in pairs)


def random_request(rng: random.Random) -> bytes:
    """Something that the parser of HTTP lets pass, from pieces that somebody may have thought of."""
    headers, body = random_fields(rng, 6), rng.choice(BODIES)
    if rng.random() < 0.7:
        headers += [(b"Host", b"localhost"), (b"Content-Type", b"application/json")]
    if rng.random() < 0.4:
        headers.append((b"Transfer-Encoding", b"chunked"))
        body = chunked(body, random_fields(rng, 4))
    else:
        headers.append((b"Content-Length", b"0" * rng.choice([0, 0, 0, 5000]) + b"%d" % len(body)))
    rng.shuffle(headers)
    address = rng.choice(PATHS) + rng.choice(QUERIES)
    return rng.choice(METHODS) + b" " + address + b" HTTP/1.1\r\n" + fields(headers) + b"\r\n" + body


def random_fields(rng: random.Random, most: int) -> list[tuple[bytes, bytes]]:
    return [(rng.choice(NAMES), rng.choice(VALUES)) for _ in range(rng.randrange(most))]


def broken_request(rng: random.Random) -> bytes:
    """A request with a piece that does not belong there, or with some bytes changed."""
    method, path = rng.choice(METHODS), rng.choice(PATHS)
    headers = [(b"Host", b"localhost"), (b"Content-Length", b"2"), *random_fields(rng, 4)]
    match rng.randrange(5):
        case 0:
            method = rng.choice(BROKEN_METHODS)
        case 1:
            path = rng.choice(BROKEN_PATHS)
        case 2:
            headers += [rng.choice(BROKEN_FIELDS), (b"Connection", b"upgrade")]
        case 3:
            headers[1] = (b"Content-Length", rng.choice(BROKEN_LENGTHS))
    request = bytearray(method + b" " + path + b" HTTP/1.1\r\n" + fields(headers) + b"\r\n{}")
    for _ in range(rng.randrange(4)):
        request[rng.randrange(len(request))] = rng.randrange(256)
    return bytes(request)
