"""The commands of the service: run it, and say who may use it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

from worthwhile.cli.arguments import whole
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
may do everything. A running service notices within two seconds.

examples:
  worthwhile token create tasks.db workers --scope decide --scope report
  worthwhile token list tasks.db
  worthwhile token revoke tasks.db workers
"""
ACTIONS = ("create", "list", "revoke")


def add_commands(commands: Any) -> None:
    """serve and token."""
    parser = commands.add_parser("serve", help="schedulers over HTTP, with a dashboard", epilog=SERVE)
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

    parser = commands.add_parser("token", help="who may use the service", epilog=TOKEN)
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("store", metavar="STORE", help="as for serve")
    parser.add_argument("name", nargs="?", help="of the token")
    parser.add_argument("--scope", action="append", default=[], help="decide, report, read or admin; repeatable")
    parser.set_defaults(run=run_token)


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
    from worthwhile.service import auth

    if (arguments.name is None) != (arguments.action == "list"):
        rule = "takes no name" if arguments.action == "list" else "needs the token's name"
        raise BadParameter(f"worthwhile token {arguments.action} {rule}")
    store = open_store(arguments.store, create=arguments.action == "create")
    try:
        if arguments.action == "create":
            token = auth.create_token(store, arguments.name, arguments.scope)
            show({"name": arguments.name, "token": token}, token, arguments.json)
        elif arguments.action == "revoke":
            auth.revoke_token(store, arguments.name)
            show({"revoked": arguments.name}, f"{arguments.name} is revoked", arguments.json)
        else:
            show(*token_list(auth.list_tokens(store)), arguments.json)
    finally:
        store.close()
    return 0


def token_list(tokens: Sequence[TokenRow]) -> tuple[dict[str, Any], str]:
    """All tokens, for a machine and for a person."""
    facts = [{"name": row.name, "scopes": row.scopes.split(","), "revoked": row.revoked is not None} for row in tokens]
    rows = [[row.name, row.scopes, day(row.created), day(row.revoked)] for row in tokens]
    text = table(["name", "scopes", "created", "revoked"], rows, left=(0, 1, 2, 3)) if rows else "no tokens"
    return {"tokens": facts}, text


def day(moment: float | None) -> str:
    return "" if moment is None else time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(moment))
