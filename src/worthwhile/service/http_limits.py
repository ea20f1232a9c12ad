"""How a connection is read: uvicorn's way, with limits to what a stranger may send and how long that may take."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEADERS = 1 << 17  # bytes of a request that are not its body: address, headers, trailers
MOST_FIELDS = 100  # headers; each takes more memory than its bytes
TOO_MANY = f"more than {MOST_FIELDS} headers"
TIMEOUT = 60.0  # seconds for a request to arrive
WRITE_TIMEOUT = 60.0  # seconds for what waits in a connection to be read


class Nowhere(list[tuple[bytes, bytes]]):
    """Where trailers go: they come as headers do, and would pass for them in the list that the application reads."""

    def append(self, field: tuple[bytes, bytes]) -> None:
        pass


NOWHERE = Nowhere()


class LimitedConnection(HttpToolsProtocol):
    """One connection; requests come one after another."""

    arriving = False  # a request of which there is more to come
    timer: asyncio.TimerHandle | None = None
    write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.outside_body, self.is_gone = 0, transport.is_closing
        self.start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self.stop_timer()
        self.stop_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Most requests come in one piece: those need neither a timer nor a count."""
        self.arriving, self.outside_body = True, self.outside_body + len(data)
        super().data_received(data)
        if self.arriving:
            self.start_timer()
            if not self.transport.is_closing():
                self.refuse_too_much()
        elif self.timer is not None:
            self.stop_timer()

    def refuse_too_much(self) -> None:
        """Of a request that goes on and on."""
        if self.outside_body > MOST_HEADERS:
            self.send_400_response(f"more than {MOST_HEADERS} bytes beside the body")
        elif len(self.headers or ()) > MOST_FIELDS:
            self.send_400_response(TOO_MANY)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.arriving = True
        self.scope["is_gone"] = self.is_gone  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        if len(self.headers) > MOST_FIELDS:
            raise ValueError(TOO_MANY)  # which the parser turns into a 400
        self.refuse_two_meanings()
        super().on_headers_complete()
        self.headers = NOWHERE

    def refuse_two_meanings(self) -> None:
        """After an Upgrade the parser stops, and would take a body for the next request."""
        fields = dict(self.headers)
        if fields.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            raise ValueError("a transfer encoding other than chunked")
        if b"upgrade" in fields and (b"content-length" in fields or b"transfer-encoding" in fields):
            raise ValueError("an upgrade with a body")

    def on_body(self, body: bytes) -> None:
        self.outside_body -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.arriving, self.outside_body = False, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self.start_write_timer()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self.start_write_timer()

    def send_400_response(self, msg: str) -> None:
        super().send_400_response(msg)
        self.start_write_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.start_write_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self.stop_write_timer()

    def start_write_timer(self) -> None:
        """Drop the connection unless it is read from; one that is being closed waits for that, too."""
        if self.write_timer is None:
            self.write_timer = self.loop.call_later(WRITE_TIMEOUT, self.transport.abort)

    def stop_write_timer(self) -> None:
        if self.write_timer is not None:
            self.write_timer.cancel()
            self.write_timer = None

    def start_timer(self) -> None:
        """Close the connection unless the request arrives in time."""
        if self.timer is None:
            self.timer = self.loop.call_later(TIMEOUT, self.time_out)

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def time_out(self) -> None:
        self.timer = None
        self.transport.close()
        self.start_write_timer()
