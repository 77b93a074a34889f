"""`eventide rules`: detection rules, kept by a database, over history or live."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

import click

from eventide.cli.app import ASKED_WRONGLY, Command, CommandGroup, Failure, LocalPath
from eventide.cli.terminal import notices, output, print_error
from eventide.cli.watch import LOOK_S, reader_left
from eventide.errors import RuleError
from eventide.sinks.words import plural

if TYPE_CHECKING:
    from eventide.api.database import Database
    from eventide.rules import Alert, LiveRules, Rule, RuleSet

FORMATS = ("text", "jsonl")

database_option = click.option(
    "--db", "database", metavar="DB", type=LocalPath(), required=True, help="The database."
)
mapping_option = click.option(
    "--mapping",
    metavar="FILE",
    type=LocalPath(folder=False),
    help="YAML: the streams of log sources, and the columns of fields.",
)
level_option = click.option(
    "--level", metavar="LEVEL", help="Only the alerts of this level, such as high, and above."
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="How to write alerts [text on a terminal, else jsonl].",
)
paths_argument = click.argument("paths", metavar="DIR…", nargs=-1, required=True, type=LocalPath())


@click.group(cls=CommandGroup, short_help="Detection rules: keep them, run them, watch them.")
def rules() -> None:
    """Run Sigma rules, which are YAML, over streams of log events. They need eventide[rules].

    Examples:
      eventide rules add my-rules/ --db logs.ev --mapping mapping.yaml
      eventide rules run --db logs.ev
      eventide rules watch --db logs.ev
    """


@click.command(cls=Command, short_help="Keep the rules in files and folders.")
@paths_argument
@database_option
@mapping_option
@click.option("--replace", is_flag=True, help="Give up all files that were added before.")
def add(paths: tuple[Path, ...], database: Path, *, mapping: Path | None, replace: bool) -> None:
    """Keep the Sigma rules in DIR, a folder with all below it or a file, in the database.

    A file takes the place of one of the same name. Rules that cannot run are printed with what is
    wrong; the others are kept and run. The mapping stays until another one is given.

    Example:
      eventide rules add my-rules/ --db logs.ev --mapping mapping.yaml
    """
    from eventide.rules import add as add_rules

    found = add_rules(opened(database), *paths, mapping=mapping, replace=replace).checked()
    print_problems(found.problems)
    output().print(summary(found.rules, found.problems), markup=False)


@click.command(cls=Command, short_help="List the rules that a database keeps.", name="list")
@database_option
def list_rules(database: Path) -> None:
    """List the rules that the database keeps: what they are about, and whether they tell anybody.

    A rule that only serves a correlation gives no alerts of its own.

    Example:
      eventide rules list --db logs.ev
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    found = kept_rules(opened(database))
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for name in ("id", "level", "kind", "title", "file"):
        table.add_column(name, no_wrap=True)
    for rule in found:
        kind = rule.kind if rule.alerts else f"{rule.kind}, no alerts"
        cells = (rule.id, rule.level, kind, rule.title, rule.file)
        table.add_row(*(Text(cell) for cell in cells))
    output().print(table)


@click.command(cls=Command, short_help="Say what is wrong with rules.")
@paths_argument
@click.option("--db", "database", metavar="DB", type=LocalPath(), help="Plan them over this one.")
@mapping_option
@click.option("--texts", is_flag=True, help="Print the query of each rule.")
def check(
    paths: tuple[Path, ...], *, database: Path | None, mapping: Path | None, texts: bool
) -> None:
    """Read the rules in DIR and plan their queries over the database, without keeping them.

    Without --db, every field is taken for a text in a column of its name, and nothing is planned.
    The exit code is 2 if something is wrong with any.

    Example:
      eventide rules check my-rules/ --db logs.ev --mapping mapping.yaml
    """
    from eventide.rules import examine, load

    if database is None:
        found, problems = examine(*paths, mapping=mapping)
    else:
        loaded = load(opened(database), *paths, mapping=mapping).checked()
        found, problems = loaded.rules, loaded.problems
    for rule in found if texts else ():
        output().print(f"{rule.id}  {rule.title}\n  {rule.text}", markup=False, soft_wrap=True)
    print_problems(problems)
    output().print(summary(found, problems), markup=False)
    if problems:
        sys.exit(ASKED_WRONGLY)


@click.command(cls=Command, short_help="Remove the rules of a file.")
@click.argument("names", metavar="FILE…", nargs=-1, required=True)
@database_option
def drop(names: tuple[str, ...], database: Path) -> None:
    """Keep the rules of FILE, as rules list shows it, no longer.

    Example:
      eventide rules drop windows/office.yml --db logs.ev
    """
    from eventide.rules import drop as drop_rules

    left = drop_rules(opened(database), *names)
    output().print(summary(left.rules, left.problems), markup=False)


@click.command(cls=Command, short_help="Print the alerts of stored events.")
@database_option
@click.option("--from", "start", metavar="TIME", help="Begin with the events of this time.")
@click.option("--to", "end", metavar="TIME", help="End before the events of this time.")
@level_option
@format_option
def run(
    database: Path, *, start: str | None, end: str | None, level: str | None, form: str | None
) -> None:
    """Run all rules of the database over its stored events, and print the alerts in order of time.

    Example:
      eventide rules run --db logs.ev --from 2026-03-02 --level high
    """
    found = runnable(opened(database), level)
    alerts = found.run(start, end)
    print_alerts(alerts, form)
    notices().print(f"{plural(len(alerts), 'alert')} of {plural(len(found), 'rule')}", style="dim")


@click.command(cls=Command, short_help="Print alerts as events come.")
@database_option
@click.option(
    "--lateness", default="0 s", metavar="TIME", help="How long rules wait for late events [0 s]."
)
@click.option("--idle", metavar="TIME", help="After so long without events the clock goes on.")
@click.option("--name", help="Keep how far the rules are: the next call goes on there.")
@click.option("--start", metavar="TIME", help="Where rules with a new name start [now].")
@level_option
@format_option
def watch(  # noqa: PLR0913 - an option each
    database: Path,
    *,
    lateness: str,
    idle: str | None,
    name: str | None,
    start: str | None,
    level: str | None,
    form: str | None,
) -> None:
    """Run all rules of the database live, and print every alert as soon as it is certain.

    They see the events that any process appends from now on. Ctrl-C ends it. With --name nothing
    is missed between two calls.

    Example:
      eventide rules watch --db logs.ev --idle "2 s" | while read alert; do ...; done
    """
    if name is None and start is not None:
        problem = "--start is for rules with a name\nhint: add --name NAME"
        raise Failure(problem, ASKED_WRONGLY)
    found = runnable(opened(database), level)
    options = {"lateness": lateness, "idle": idle, "name": name, "start": start or "now"}
    live = found.subscribe(lambda alerts: print_alerts(alerts, form), **options)
    notices().print(f"watching {plural(len(found), 'rule')}; Ctrl-C ends it", style="dim")
    with live:
        follow(live)


rules.add_command(add)
rules.add_command(list_rules)
rules.add_command(check)
rules.add_command(drop)
rules.add_command(run)
rules.add_command(watch)


def opened(database: Path) -> Database:
    """Return the database."""
    from eventide.api.database import open_database

    return open_database(database, create=False)


def kept_rules(database: Database) -> RuleSet:
    """Return the rules that a database keeps, and print what is wrong with some."""
    from eventide.rules import kept

    found = kept(database)
    print_problems(found.problems)
    return found


def runnable(database: Database, level: str | None) -> RuleSet:
    """Return the rules that have a plan, of a level and above."""
    found = kept_rules(database).checked()
    if not found.rules:
        message = f"{database.path} keeps no rules that can run"
        raise RuleError(message, hint="eventide rules add DIR --db DB")
    return found if level is None else found.at_least(level)


def follow(live: LiveRules) -> None:
    """Wait until the rules have failed, or whoever reads the alerts has left."""
    while not live.failures:
        if reader_left():
            raise BrokenPipeError
        sleep(LOOK_S)
    raise live.failures[0]


def print_alerts(alerts: Sequence[Alert], form: str | None) -> None:
    """Print alerts, a line each."""
    form = form or ("text" if output().is_terminal else "jsonl")
    for alert in alerts:
        click.echo(str(alert) if form == "text" else alert.to_json())


def print_problems(problems: Sequence[RuleError]) -> None:
    """Print what is wrong with rules, on stderr."""
    for problem in problems:
        print_error(str(problem))


def summary(found: Sequence[Rule], problems: Sequence[RuleError]) -> str:
    """Return how many rules there are, as text."""
    text = plural(len(found), "rule")
    return f"{text}, {plural(len(problems), 'problem')}" if problems else text
