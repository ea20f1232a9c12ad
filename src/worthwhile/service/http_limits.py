"""How a connection is read: uvicorn's way, with an end to what a stranger may send and how long that may take."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_BESIDE = 1 << 20  # bytes of a request that are not its body: address, headers, trailers
LONGEST = 60.0  # seconds for a request to arrive


class Connection(HttpToolsProtocol):
    """One connection; requests come one after another."""

    late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.beside = 0
        self.wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self.arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.beside += len(data)
        self.wait()
        super().data_received(data)
        if self.beside > MOST_BESIDE and not self.transport.is_closing():
            self.send_400_response(f"more than {MOST_BESIDE} bytes beside the body")

    def on_body(self, body: bytes) -> None:
        self.beside -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.beside = 0
        self.arrived()
        super().on_message_complete()

    def wait(self) -> None:
        """Until the request is there, or its time is over."""
        if self.late is None:
            self.late = self.loop.call_later(LONGEST, self.give_up)

    def arrived(self) -> None:
        if self.late is not None:
            self.late.cancel()
            self.late = None

    def give_up(self) -> None:
        self.late = None
        self.transport.close()
