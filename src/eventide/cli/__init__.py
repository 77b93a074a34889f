"""Eventide from a shell: one file a subcommand.

ingest.py     eventide ingest     files into a stream
query.py      eventide sql        the rows of a query
cel.py        eventide cel        the events of a CEL query
explain.py    eventide explain    how it would be answered, as text and as a picture
tpstream.py   eventide tpstream   the matches of a temporal pattern, as rows and drawn
replay.py     eventide replay     the rows of a query as if its events came again
watch.py      eventide watch      the rows of a live query as they come
queries.py    eventide queries    the durable queries of a database
rules.py      eventide rules      detection rules: keep them, run them over history, watch them
streams.py    eventide streams    what a database holds
upkeep.py     eventide stats      look inside; eventide compact, eventide backup
verify.py     eventide verify     is it whole; eventide repair, what can be saved
calibrate.py  eventide calibrate  measure this machine, to plan queries for it
warm.py       eventide warm       compile what queries need
demo.py       eventide demo       the product in two minutes
app.py        the command itself: errors, exit codes, --debug
terminal.py   where it prints: tables, errors in colour

The subcommands import what they need when they run: `eventide --help` answers at once.
"""

from eventide.cli.app import eventide
from eventide.cli.calibrate import calibrate
from eventide.cli.cel import cel
from eventide.cli.demo import demo
from eventide.cli.explain import explain
from eventide.cli.ingest import ingest
from eventide.cli.queries import queries
from eventide.cli.query import sql
from eventide.cli.replay import replay
from eventide.cli.rules import rules
from eventide.cli.streams import streams
from eventide.cli.tpstream import tpstream
from eventide.cli.upkeep import backup, compact, stats
from eventide.cli.verify import repair, verify
from eventide.cli.warm import warm
from eventide.cli.watch import watch

COMMANDS = (
    ingest,
    sql,
    cel,
    tpstream,
    explain,
    replay,
    watch,
    queries,
    rules,
    streams,
    stats,
    compact,
    backup,
    verify,
    repair,
    calibrate,
    warm,
    demo,
)

for command in COMMANDS:
    eventide.add_command(command)


def main() -> None:
    """Run the command line; what the `eventide` script calls."""
    eventide()


__all__ = ["eventide", "main"]
