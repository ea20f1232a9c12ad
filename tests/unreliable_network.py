"""A network between a client and its server that stops, breaks, loses the rest of a message, or takes its time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

AT_ONCE = 65536  # bytes


class Proxy:
    """Forwards what comes to a Unix socket, both ways; `on_message` is asked what to do with each portion of bytes.

    It may return the bytes, fewer of them, or None: then the connection is cut.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self.on_message: Callable[[bytes], bytes | None] = bytes
        self.flows = threading.Event()
        self.flows.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(self.target)
                except OSError:
                    client.close()
                    continue
                self.pairs.append((client, server))
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self.forward, args=(source, sink), daemon=True).start()

    def forward(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(AT_ONCE):
                self.flows.wait()
                kept = self.on_message(data)
                if kept is not None:
                    sink.sendall(kept)
                if kept != data:
                    break
        except OSError:
            pass
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def cut_all(self) -> None:
        """All connections at once."""
        for pair in self.pairs:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        self.pairs.clear()

    def close(self) -> None:
        self.flows.set()
        self.listener.close()
        self.cut_all()


@contextmanager
def network_before(url: str) -> Iterator[tuple[Proxy, str]]:
    """A proxy before the server of an address with a Unix socket, and the address that leads through it."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    proxy = Proxy(str(Path(query["host"][0]) / ".s.PGSQL.5432"))
    others = "&".join(f"{name}={value[0].replace('=', '%3D')}" for name, value in query.items() if name != "host")
    user, _, _ = parts.netloc.rpartition("@")
    try:
        yield (
            proxy,
            f"postgresql://{user}@127.0.0.1:{proxy.port}{parts.path}?sslmode=disable&gssencmode=disable&{others}",
        )
    finally:
        proxy.close()


def slowly(seconds: float) -> Callable[[bytes], bytes]:
    def wait(data: bytes) -> bytes:
        time.sleep(seconds)
        return data

    return wait
