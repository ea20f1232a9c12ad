"""The tables, and how a store of an earlier version becomes one of this version."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from worthwhile.errors import StoreError

HARMLESS = ("host", "hostaddr", "port", "dbname", "options", "synchronous")  # settings in a store's address
VERSION = 6

# `{bytes}` and `{identity}` are the two words in which the dialects differ. Types are the few that both know: a flag is
# a bigint, a time is in seconds since 1970.
FIRST = """
-- locked by whoever uses the scheduler: all its numbers are given under this lock, so they follow the commits
create table schedulers (
  id {identity},
  name text not null unique,
  seed_key bigint not null,
  settings text not null,
  settings_generation bigint not null default 0, -- a process that knows an older one reads them again
  -- how many there are: the next one's number
  names bigint not null default 0,
  tasks bigint not null default 0,
  reports bigint not null default 0,
  checksum bigint -- of name, seed_key and settings (here as elsewhere, null if an earlier version wrote the row)
);
-- kinds, options, policies and features are numbers everywhere else: the n-th of its role that was ever used
create table names (
  scheduler bigint not null,
  position bigint not null,
  role text not null,
  number bigint not null,
  text text not null,
  checksum bigint,
  primary key (scheduler, position)
);
create table tasks (
  scheduler bigint not null,
  task bigint not null,
  -- the decision, and all that is needed to make it again
  kind bigint not null,
  option bigint not null,
  options text not null,
  pending text not null,
  reward_estimate double precision not null,
  cost_estimate double precision not null,
  price double precision,
  seen bigint not null,
  policy bigint not null,
  -- who asked, when, until when it counts as running, and what it costs beyond what it reports
  key text,
  decided double precision not null,
  lease_end double precision not null,
  overhead double precision not null,
  -- what was reported so far, also a reward or a cost alone, and its number in the log once both are there
  reward double precision,
  cost double precision,
  report bigint,
  cancelled bigint not null,
  features text, -- JSON
  probability double precision, -- of the choice, null if it is not known
  outcome bigint not null default 0, -- 0 a result, 1 failed, 2 lost
  attempts text, -- JSON: earlier ones
  holder text, -- who has claimed it
  own bigint, -- the option that the policy would have taken, if the task took another
  mode bigint not null default 0, -- how the option came about: see CHOSEN in base.py
  in_flight text, -- JSON: what was expected of the tasks running when it was decided
  checksum bigint,
  primary key (scheduler, task)
);
create unique index tasks_by_key on tasks (scheduler, key) where key is not null;
-- partial, so that counting what runs takes no longer with a long history
create index tasks_running on tasks (scheduler, kind, lease_end, option) where report is null and cancelled = 0;
-- the log, numbered without gaps: what every process folds, in this order
create table reports (
  scheduler bigint not null,
  number bigint not null,
  task bigint not null,
  observed bigint not null, -- the option that was seen on the side, or below 0: see OWN in base.py
  -- what is learned, repeated from the task so that the log alone is enough
  kind bigint,
  option bigint,
  reward double precision,
  cost double precision,
  overhead double precision,
  reward_estimate double precision,
  cost_estimate double precision,
  policy bigint,
  outcome bigint not null default 0,
  reason text, -- of a failure
  features text, -- JSON: of the task
  mode bigint not null default 0, -- of the task
  checksum bigint,
  primary key (scheduler, number)
);
-- a report counts once, whatever a process believes
create unique index reports_once on reports (scheduler, task, observed);
"""
SNAPSHOTS = """
-- the fold of the first `number` entries of the log: it only shortens a start
create table snapshots (
  scheduler bigint primary key,
  number bigint not null,
  policy bigint not null,
  kinds bigint not null,
  options bigint not null,
  features bigint not null,
  set_aside text not null,
  parts bigint not null, -- how many
  checksum bigint not null -- of all of it
);
-- its bytes: a database limits how many a row may have
create table snapshot_parts (
  scheduler bigint not null,
  part bigint not null,
  bytes {bytes} not null,
  primary key (scheduler, part)
);
"""
TOKENS = """
-- who may use a service on this store, revoked ones too
create table tokens (
  hash text primary key, -- never the token itself
  name text not null unique,
  scopes text not null,
  created double precision not null,
  revoked double precision,
  schedulers text, -- JSON: a list of names, null for all
  expires double precision -- null: never
);
"""
SESSIONS = """
-- people who use the dashboard
create table sessions (
  hash text primary key, -- never the secret itself
  token text not null, -- its name
  created double precision not null,
  expires double precision not null
);
-- who changed what
create table audit (
  number {identity},
  time double precision not null,
  token text, -- its name
  action text not null,
  scheduler text,
  details text
);
"""
TABLES = FIRST + SNAPSHOTS + TOKENS + SESSIONS

FIRST_TOKENS = """
create table tokens (
  hash text primary key,
  name text not null unique,
  scopes text not null,
  created double precision not null,
  revoked double precision
)
"""

RENAMED = """
alter table schedulers rename column key to seed_key;
alter table tasks rename column ratio to price;
"""
# `settings_generation` got its name so that a process of version 3 which is still running is refused by the database at
# its next transaction, and stores nothing. Snapshots are made again.
CHECKED = (
    """
alter table schedulers rename column generation to settings_generation;
alter table schedulers add column checksum bigint;
alter table names rename column place to position;
alter table names add column checksum bigint;
alter table tasks add column features text;
alter table tasks add column probability double precision;
alter table tasks add column outcome bigint not null default 0;
alter table tasks add column attempts text;
alter table tasks add column holder text;
alter table tasks add column checksum bigint;
alter table reports add column outcome bigint not null default 0;
alter table reports add column reason text;
alter table reports add column checksum bigint;
alter table tokens add column schedulers text;
alter table tokens add column expires double precision;
update tasks set holder = '' where report is null and cancelled = 0; -- no version before has taken one for lost
drop table snapshots;
"""
    + SNAPSHOTS
    + SESSIONS
)
# Snapshots are made again. A process of version 4 finds the version in every header that it reads, and stores nothing.
FEATURED = (
    """
alter table reports add column features text;
drop table snapshots;
drop table snapshot_parts;
"""
    + SNAPSHOTS
)
# Here, too, a process of version 5 finds the new version in every header.
PROVED = """
alter table tasks add column own bigint;
alter table tasks add column mode bigint not null default 0;
alter table tasks add column in_flight text;
alter table reports add column mode bigint not null default 0;
"""
# version → the statements that lead from it to the next
MIGRATIONS = {1: FIRST_TOKENS, 2: RENAMED, 3: CHECKED, 4: FEATURED, 5: PROVED}


def statements(text: str) -> list[str]:
    """One statement after the other."""
    return [part.strip() for part in text.split(";") if part.strip()]


def prepare(version: int | None, run: Callable[[str], Any], words: dict[str, str], where: str) -> None:
    """Create or migrate the tables; `version` is the store's, None if it is empty."""
    if version is not None and version > VERSION:
        raise too_new(where, version)
    if version is None:
        todo = [*statements(TABLES.format(**words)), "create table worthwhile (version bigint not null)"]
        todo.append(f"insert into worthwhile values ({VERSION})")
    else:
        todo = [sql for old in range(version, VERSION) for sql in statements(MIGRATIONS[old].format(**words))]
        todo += [f"update worthwhile set version = {VERSION}"] if todo else []
    for sql in todo:
        run(sql)


def version_in(rows: Sequence[Sequence[Any]]) -> int:
    """The schema version, from all rows of its table."""
    if len(rows) != 1 or type(rows[0][0]) is not int or rows[0][0] < 1:
        raise Damaged("worthwhile", "its only row", f"{[*map(list, rows)]} instead of one version number")
    return int(rows[0][0])


def too_new(where: str, version: Any) -> StoreError:
    """Somebody has brought the store up to date for a newer worthwhile than this one."""
    return StoreError(
        f"{where} has schema version {version}, this worthwhile knows versions up to {VERSION}; "
        "it was used by a newer worthwhile: pip install --upgrade worthwhile"
    )


class Damaged(StoreError):
    """Something that cannot be done without is not what was written."""

    def __init__(self, table: str, row: str, why: str) -> None:
        remedy = "restore a backup; `worthwhile check` lists all that is damaged"
        super().__init__(f"table {table}, {row}: {why}; nothing was stored: {remedy}")
        self.damage = table, row, why


def without_password(url: str) -> str:
    """A store's address, fit to be shown: no user, and of the settings only those that are no secret."""
    scheme, separator, rest = url.partition("://")
    if not separator:  # a file, or what was meant as libpq's keywords
        return re.sub(r"(?i)(password\s*=\s*)('(\\.|[^'\\])*'?|\S+)", r"\1…", url)
    user, at, address = rest.rpartition("@")
    if "?" in user:  # of a password, or before a setting with an @ in it: nobody can tell
        return f"{scheme}://…"
    address, question, query = address.partition("?")
    pairs = (pair.partition("=") for pair in query.split("&"))
    shown = [f"{name}={value}" if name in HARMLESS else f"{name}=…" for name, _, value in pairs]
    return f"{scheme}://{at and '…@'}{address}{question}{'&'.join(shown) if question else ''}"
