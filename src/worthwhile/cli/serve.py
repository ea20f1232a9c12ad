"""The commands of the service: run it, and say who may use it."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import Any

from worthwhile.cli.arguments import positive, whole
from worthwhile.cli.help import add_parser
from worthwhile.cli.output import show
from worthwhile.compiling import ENGINES
from worthwhile.errors import BadParameter
from worthwhile.formatting import table
from worthwhile.live.stores.base import TokenRow

SERVE = """\
Everything under http://127.0.0.1:8080: the dashboard at /, the API at /v1, its description at /docs. Another address
than this machine's own is refused until there is a token. SIGTERM and Ctrl-C finish what has begun.

examples:
  worthwhile serve
  worthwhile serve --store postgresql://user@host/database --host 0.0.0.0 --port 80
  worthwhile serve --allow-policy my_module:MyPolicy
"""
TOKEN = """\
A token is shown once, when it is created; the store keeps only its hash. Scopes: decide, report, read, and admin, which
may do everything. It is for all schedulers unless --scheduler names some, and for ever unless --expires says how long.
A running service notices within two seconds.

examples:
  worthwhile token create tasks.db workers --scope decide --scope report
  worthwhile token create tasks.db guest --scope read --scheduler training --expires 30d
  worthwhile token list tasks.db
  worthwhile token revoke tasks.db workers
"""
AUDIT = """\
What was changed through a service, and which tokens were made and revoked, newest first.

examples:
  worthwhile audit tasks.db --count 20
"""
UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}  # seconds
ACTIONS = ("create", "list", "revoke")


def add_commands(commands: Any) -> None:
    """serve, token and audit."""
    parser = add_parser(commands, "serve", SERVE)
    parser.add_argument("--store", default="worthwhile.db", help="a SQLite file or postgresql://… (worthwhile.db)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=whole, default=8080, metavar="N", help="(8080)")
    parser.add_argument("--engine", choices=ENGINES, default="python", help="compiled needs the extra fast (python)")
    parser.add_argument(
        "--patience", type=float, default=10.0, metavar="SECONDS", help="until a client is told to come back (10)"
    )
    parser.add_argument(
        "--allow-policy", action="append", default=[], metavar="MODULE:CLASS", help="a policy of your own; repeatable"
    )
    parser.add_argument("--access-log", action=argparse.BooleanOptionalAction, default=True, help="a line per request")
    parser.add_argument("--until-input-ends", action="store_true", help="stop with whoever holds its standard input")
    parser.set_defaults(run=run_serve)

    parser = add_parser(commands, "token", TOKEN)
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("store", metavar="STORE", help="as for serve")
    parser.add_argument("name", nargs="?", help="of the token")
    parser.add_argument("--scope", action="append", default=[], help="decide, report, read or admin; repeatable")
    parser.add_argument("--scheduler", action="append", default=[], help="only this one; repeatable (all)")
    parser.add_argument("--expires", type=lifetime, metavar="TIME", help="90m, 12h, 30d or 8w from now (never)")
    parser.set_defaults(run=run_token)

    parser = add_parser(commands, "audit", AUDIT)
    parser.add_argument("store", metavar="STORE", help="as for serve")
    parser.add_argument("--count", type=positive, default=100, metavar="N", help="(100)")
    parser.set_defaults(run=run_audit)


def lifetime(text: str) -> float:
    """Seconds, from 30d or the like."""
    number, unit = text[:-1], text[-1:]
    if unit not in UNITS or not number.isdecimal() or not 0 < int(number) < 10_000:
        raise argparse.ArgumentTypeError(f"{text!r}: write how long from now, as in 90m, 12h, 30d or 8w")
    return int(number) * UNITS[unit]


def run_serve(arguments: argparse.Namespace) -> int:
    """worthwhile serve"""
    from worthwhile.service.server import serve, stop_with_input  # needs the extra

    if not 0.0 < arguments.patience < 3600.0:
        raise BadParameter(f"--patience {arguments.patience:g}: it must be above 0 and below 3600 seconds")
    if arguments.until_input_ends:
        stop_with_input()
    serve(
        arguments.store,
        arguments.host,
        arguments.port,
        arguments.engine,
        arguments.patience,
        arguments.access_log,
        arguments.allow_policy,
    )
    return 0


def run_token(arguments: argparse.Namespace) -> int:
    """worthwhile token"""
    from worthwhile.live.stores import open_store
    from worthwhile.service import tokens

    if (arguments.name is None) != (arguments.action == "list"):
        rule = "takes no name" if arguments.action == "list" else "needs the token's name"
        raise BadParameter(f"worthwhile token {arguments.action} {rule}")
    store = open_store(arguments.store, create=arguments.action == "create")
    try:
        if arguments.action == "create":
            only, expires = arguments.scheduler, arguments.expires
            token = tokens.create_token(store, arguments.name, arguments.scope, only, expires)
            show({"name": arguments.name, "token": token}, token, arguments.json)
        elif arguments.action == "revoke":
            tokens.revoke_token(store, arguments.name)
            show({"revoked": arguments.name}, f"{arguments.name} is revoked", arguments.json)
        else:
            show(*token_list(tokens.list_tokens(store)), arguments.json)
    finally:
        store.close()
    return 0


def token_list(rows: Sequence[TokenRow]) -> tuple[dict[str, Any], str]:
    """All tokens, for a machine and for a person."""
    from worthwhile.service.tokens import token_facts

    facts = [token_facts(row) | {"revoked": row.revoked is not None} for row in rows]
    cells = [
        [
            row.name,
            row.scopes,
            ", ".join(fact["schedulers"] or ["all"]),
            day(row.created),
            day(row.expires),
            day(row.revoked),
        ]
        for row, fact in zip(rows, facts, strict=True)
    ]
    titles = ["name", "scopes", "schedulers", "created", "expires", "revoked"]
    text = table(titles, cells, left=range(len(titles))) if rows else "no tokens"
    return {"tokens": facts}, text


def run_audit(arguments: argparse.Namespace) -> int:
    """worthwhile audit"""
    from worthwhile.live.stores import open_store

    store = open_store(arguments.store, create=False)
    try:
        rows = store.transact(lambda tx: tx.audit(arguments.count))
    finally:
        store.close()
    facts = [row._asdict() | {"details": json.loads(row.details)} for row in rows]
    cells = [[day(row.time), who(row.token), row.action, row.scheduler or "", row.details] for row in rows]
    titles = ["time", "who", "what", "scheduler", "details"]
    text = table(titles, cells, left=range(len(titles))) if rows else "nothing was changed yet"
    show({"audit": facts}, text, arguments.json)
    return 0


def who(token: str | None) -> str:
    """A token's name, or what stands for it."""
    return "command line" if token is None else token or "no token"


def day(moment: float | None) -> str:
    return "" if moment is None else time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(moment))
