"""`worthwhile serve`: the service in a process of its own, until somebody stops it."""

from __future__ import annotations

import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from worthwhile.errors import BadParameter, MissingExtra
from worthwhile.live.stores import open_store
from worthwhile.policies import registry
from worthwhile.service.app import create_app
from worthwhile.service.auth import LOOPBACK
from worthwhile.service.tokens import list_tokens

try:
    import uvicorn

    from worthwhile.service.http_limits import LimitedConnection
except ImportError:
    raise MissingExtra("the service", "service") from None

DRAIN = 30  # seconds for what is being answered when the process is told to stop
CONNECTIONS_WAITING = 2048


def serve(
    url: str, host: str, port: int, engine: str, patience: float, access_log: bool, allowed_policies: Sequence[str] = ()
) -> None:
    """Answer until SIGTERM or Ctrl-C, then finish what has begun."""
    with importing_only(allowed_policies):
        run(url, host, port, engine, patience, access_log, allowed_policies)


def run(
    url: str, host: str, port: int, engine: str, patience: float, access_log: bool, allowed_policies: Sequence[str]
) -> None:
    require_token(url, host)
    configure_logging(access_log)
    listening = listen(host, port)
    app = create_app(url, engine=engine, patience=patience, allowed_policies=allowed_policies)
    config = uvicorn.Config(
        app,
        http=LimitedConnection,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=DRAIN,
        backlog=CONNECTIONS_WAITING,
        ws="none",
    )
    address = f"[{host}]" if ":" in host else host
    raise_file_limit()
    sys.stderr.write(f"serving at http://{address}:{listening.getsockname()[1]}/\n")
    gc.collect()
    gc.freeze()  # what is there now stays; looking through it again and again costs milliseconds
    gc.set_threshold(50_000, 20, 100)
    uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def importing_only(policies: Sequence[str]) -> Iterator[None]:
    """Let this process import these policies and no others, not even one that a scheduler in the store has."""
    for path in policies:
        if ":" not in path:
            raise BadParameter(
                f"--allow-policy {path}: those of the list are allowed anyway; write package.module:Class"
            )
        registry.find(path)
    registry.IMPORTABLE = frozenset(policies)
    try:
        yield
    finally:
        registry.IMPORTABLE = None


def stop_with_input() -> None:
    """End when standard input does: whoever started this process is gone, however it went."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def require_token(url: str, host: str) -> None:
    """Whoever can be reached from elsewhere must ask for tokens."""
    if is_loopback(host):
        return
    store = open_store(url)
    try:
        now = time.time()
        tokens = [row for row in list_tokens(store) if row.revoked is None and (row.expires or now) >= now]
    finally:
        store.close()
    if not tokens:
        raise BadParameter(
            f"host {host}: other machines could reach it, and there is no token yet; "
            "make one with `worthwhile token create`, or leave --host out"
        )


def is_loopback(host: str) -> bool:
    try:
        return host in LOOPBACK or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any that is free."""
    if not 0 <= port <= 65535:
        raise BadParameter(f"cannot listen on port {port}; a port is a number from 0 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=CONNECTIONS_WAITING)
    except OSError as error:
        raise BadParameter(f"cannot listen on {host}, port {port}: {error}; give another --port or --host") from None


def raise_file_limit() -> None:
    """As many as the system lets a process have: every connection is one, and every scheduler on SQLite three."""
    if sys.platform != "win32":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def configure_logging(access_log: bool) -> None:
    """Everything to standard error: requests as JSON, the rest as text."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    requests = logging.getLogger("worthwhile.access")
    requests.handlers, requests.propagate = [logging.StreamHandler(sys.stderr)], False
    requests.setLevel(logging.INFO if access_log else logging.WARNING)
