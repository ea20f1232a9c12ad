"""What a request says about itself is read once, from where it belongs: raw requests to a real service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from service_process import ServiceProcess, store_at
from service_raw import ask, chunked, fields
from worthwhile.live.stores import open_store
from worthwhile.service.tokens import create_token

BODY = b'{"kind": "a", "options": [1]}'
HOST, JSON = (b"Host", b"localhost"), (b"Content-Type", b"application/json")
LENGTH, CHUNKED = (b"Content-Length", b"%d" % len(BODY)), (b"Transfer-Encoding", b"chunked")
ELSEWHERE, HERE = (b"Origin", b"http://evil.example"), (b"Origin", b"http://localhost")
Field = tuple[bytes, bytes]


class Guarded:
    """A service with a token, and its address for decisions."""

    def __init__(self, folder: Path) -> None:
        store = open_store(store_at(folder))
        self.token = (b"Authorization", b"Bearer " + create_token(store, "workers", ["decide"]).encode())
        store.close()
        self.process = ServiceProcess(store_at(folder), "--no-access-log")

    def status(self, headers: list[Field], body: bytes = BODY, path: bytes = b"/v1/schedulers/default/tasks") -> int:
        request = b"POST " + path + b" HTTP/1.1\r\nConnection: close\r\n" + fields(headers) + b"\r\n" + body
        return int(ask(self.process.port, request).split(b" ", 2)[1])


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    service = Guarded(tmp_path_factory.mktemp("guarded"))
    with service.process:
        yield service
    assert "Traceback" not in "".join(service.process.lines)


def test_trailers_are_no_headers(guarded: Guarded) -> None:
    token = guarded.token
    assert guarded.status([HOST, JSON, CHUNKED], chunked(BODY, [token])) == 401
    assert guarded.status([HOST, JSON, token, ELSEWHERE, CHUNKED], chunked(BODY, [HERE])) == 403
    assert guarded.status([HOST, JSON, token, CHUNKED], chunked(BODY, [ELSEWHERE, (b"Authorization", b"x")])) == 200


def test_a_header_that_is_there_twice_is_refused(guarded: Guarded) -> None:
    token = guarded.token
    sound = [HOST, JSON, token, LENGTH]
    assert guarded.status(sound) == 200
    for again in (HOST, (b"host", b"evil.example"), token, (b"Authorization", b"Bearer x"), JSON, LENGTH):
        assert guarded.status([*sound, again]) == 400
        assert guarded.status([again, *sound]) == 400
    for pair in ((HERE, HERE), (ELSEWHERE, HERE), ((b"Cookie", b"a=b"), (b"Cookie", b"c=d"))):
        assert guarded.status([*sound, *pair]) == 400
    assert guarded.status([*sound, (b"Accept", b"a"), (b"Accept", b"b")]) == 200


@pytest.mark.parametrize("origin", [b"http://[", b"http://[::1", b"//[", b"http://\xff[", b""])
def test_an_origin_that_is_no_address_is_another_site(guarded: Guarded, origin: bytes) -> None:
    for host in ([HOST], [(b"Host", b"")], []):
        assert guarded.status([*host, JSON, guarded.token, LENGTH, (b"Origin", origin)]) == 403


def test_a_length_of_thousands_of_digits_is_refused(guarded: Guarded) -> None:
    length = (b"Content-Length", b"0" * 5000 + LENGTH[1])
    assert guarded.status([HOST, JSON, length], BODY, b"/login") == 413


def test_hundreds_of_headers_are_refused(guarded: Guarded) -> None:
    assert guarded.status([HOST, JSON, guarded.token, LENGTH, *[(b"X", b"y")] * 500]) == 400


@pytest.mark.parametrize("protocol", [b"x", b"websocket", b"h2c"])
def test_a_body_after_an_upgrade_is_no_second_request(guarded: Guarded, protocol: bytes) -> None:
    upgrade = [(b"Connection", b"Upgrade"), (b"Upgrade", protocol)]
    assert guarded.status([HOST, JSON, guarded.token, LENGTH, *upgrade]) == 400
    assert guarded.status([HOST, JSON, guarded.token, CHUNKED, *upgrade], chunked(BODY, [])) == 400


def test_no_transfer_encoding_but_chunked_is_taken(guarded: Guarded) -> None:
    packed = (b"Transfer-Encoding", b"gzip, chunked")
    assert guarded.status([HOST, JSON, guarded.token, packed], chunked(BODY, [])) == 400
