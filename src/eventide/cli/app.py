"""The command itself: an error becomes one paragraph and an exit code.

0     done
1     it failed: a file that cannot be read, a full disk, an engine that cannot run the query
2     it was asked wrongly: an unknown option, a missing argument, a mistake in the query
130   interrupted            141   the reader of a pipe left
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click

from eventide.cli.terminal import print_error
from eventide.errors import BindError, EventideError, ParseError, RuleError, StoreError
from eventide.local_path import local_path

FAILED, ASKED_WRONGLY, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141

DEBUG = "eventide.debug"


class Formatter(click.HelpFormatter):
    """Click's help with headings and names in colour; click removes it without a terminal."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage line."""
        super().write_usage(prog, args, click.style(prefix or "Usage: ", bold=True))

    def write_heading(self, heading: str) -> None:
        """Write a heading."""
        super().write_heading(click.style(heading, bold=True))

    def write_dl(self, rows: Any, col_max: int = 24, col_spacing: int = 2) -> None:  # noqa: ANN401
        """Write names beside what they mean."""
        named = [(click.style(name, fg="cyan"), meaning) for name, meaning in rows]
        super().write_dl(named, col_max, col_spacing)


class Context(click.Context):
    """Click's context with our formatter."""

    formatter_class = Formatter


class Failure(click.ClickException):
    """An error as one paragraph, with the exit code that fits it."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.code = exit_code

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """The code the process ends with."""
        return self.code

    def show(self, file: object = None) -> None:  # noqa: ARG002
        """Print the paragraph."""
        print_error(self.message)


class LocalPath(click.Path):
    """A path, or a `file:` address; an address elsewhere is refused."""

    def __init__(self, *, folder: bool = True, file: bool = True) -> None:
        super().__init__(dir_okay=folder, file_okay=file, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Return the path that was meant."""
        return super().convert(asked_path(value), param, ctx)


def asked_path(text: str | Path) -> Path:
    """Return the path that a user gives, or fail."""
    try:
        return local_path(text)
    except StoreError as error:
        raise Failure(str(error), ASKED_WRONGLY) from None


class Command(click.Command):
    """A subcommand, which takes `--debug` too: one may add it at the end of the line."""

    context_class = Context

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.params.append(debug_option())
        self.help = keep_layout(self.help or "")


class CommandGroup(click.Group):
    """Several subcommands under one name."""

    context_class = Context

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.params.append(debug_option())
        self.help = keep_layout(self.help or "")

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """List the subcommands in the order in which they are needed, not alphabetically."""
        return list(self.commands)


class App(CommandGroup):
    """The `eventide` command."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a subcommand; turn errors into a paragraph."""
        with reporting(ctx):
            return super().invoke(ctx)


def keep_layout(text: str) -> str:
    """Keep click from filling paragraphs that have indented lines: they are examples."""
    paragraphs = cleandoc(text).split("\n\n")
    return "\n\n".join(
        f"\b\n{each}" if "\n  " in each or each[:1] == " " else each for each in paragraphs
    )


@contextmanager
def reporting(ctx: click.Context) -> Iterator[None]:
    """Turn errors into paragraphs and exit codes."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except BrokenPipeError:
        # Python would complain again when it flushes output that the reader did not read.
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        ctx.exit(PIPE_CLOSED)
    except KeyboardInterrupt:
        text = "interrupted"
        raise Failure(text, INTERRUPTED) from None
    except EventideError as error:
        show_traceback(ctx)
        wrong = isinstance(error, ParseError | BindError | RuleError)
        raise Failure(str(error), ASKED_WRONGLY if wrong else FAILED) from error
    except Exception as error:
        show_traceback(ctx)
        raise Failure(unexpected(error, ctx), FAILED) from error


def show_traceback(ctx: click.Context) -> None:
    """Print where the error came from, if `--debug` asked for it."""
    if ctx.meta.get(DEBUG):
        click.echo(traceback.format_exc(), err=True)


def unexpected(error: Exception, ctx: click.Context) -> str:
    """Describe an unexpected error."""
    what = " ".join(str(error).split())
    message = f"unexpected {type(error).__name__}{': ' if what else ''}{what}"
    return (
        message if ctx.meta.get(DEBUG) else f"{message}\nhint: run again with --debug to see where"
    )


def debug_option() -> click.Option:
    """Return the `--debug` option; click shares `meta` between a command and its subcommands."""

    def remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta[DEBUG] = True

    return click.Option(
        ["--debug"],
        is_flag=True,
        expose_value=False,
        callback=remember,
        help="Show the traceback of an error.",
    )


def settings() -> Mapping[str, object]:
    """Return what every command has: `-h`, and no colour where NO_COLOR says so."""
    no_color = os.environ.get("NO_COLOR")
    return {"help_option_names": ["-h", "--help"], "color": False if no_color else None}


def version() -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Return the `--version` option, which looks the version up when it is asked."""
    return click.version_option(package_name="eventide", message="%(prog)s %(version)s")


@click.group(cls=App, context_settings=settings())
@version()
def eventide() -> None:
    """Eventide: an event-stream database. One query over history or live, here or on Spark.

    A database is a folder, a stream is a name in it. Start like this:

      eventide demo
      eventide ingest cars.csv --into traffic.ev --stream cars
      eventide sql traffic.ev "SELECT car, MAX(speed) AS top FROM cars
                               GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)"
    """
