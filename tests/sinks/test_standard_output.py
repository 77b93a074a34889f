"""Rows on standard output: names once, every take at once, and an end without noise."""

from __future__ import annotations

import io
import subprocess
import sys

import pyarrow as pa
import pytest

from eventide.errors import SinkError
from eventide.sinks import Sink, StandardOutput
from eventide.sinks.standard_output import OutputFormat

ONE = pa.record_batch({"car": ["a"], "speed": [50.5]})
MORE = pa.record_batch({"car": ["a long name", None], "speed": [7.0, 1000.0]})

SHOWN: dict[OutputFormat, str] = {
    "table": (
        "car │ speed\n────┼──────\na   │  50.5\n"
        "a long name │     7\nnull        │  1000\n"
        "a           │  50.5\n"
    ),
    "csv": "car,speed\na,50.5\na long name,7.0\n,1000.0\na,50.5\n",
    "jsonl": (
        '{"car": "a", "speed": 50.5}\n{"car": "a long name", "speed": 7.0}\n'
        '{"car": null, "speed": 1000.0}\n{"car": "a", "speed": 50.5}\n'
    ),
}


class TerminalText(io.StringIO):
    """A terminal without bytes below it, as in a notebook."""

    def isatty(self) -> bool:
        return True


def hand_over(sink: StandardOutput) -> None:
    """Hand a few rows over."""
    sink.begin("alerts", ONE.schema)
    for rows, first_row in [(ONE, 0), (MORE, 1), (ONE.slice(0, 0), 3), (ONE, 3)]:
        sink.take(rows, first_row)
    assert sink.safe() is None
    sink.close()


@pytest.mark.parametrize("form", SHOWN)
def test_rows_in_every_format(capsys: pytest.CaptureFixture[str], form: OutputFormat) -> None:
    sink = StandardOutput(form)
    assert isinstance(sink, Sink)
    hand_over(sink)
    assert capsys.readouterr().out == SHOWN[form]


@pytest.mark.parametrize("form", SHOWN)
def test_rows_on_a_terminal(monkeypatch: pytest.MonkeyPatch, form: OutputFormat) -> None:
    terminal = TerminalText()
    monkeypatch.setattr(sys, "stdout", terminal)
    hand_over(StandardOutput(form))
    assert terminal.getvalue() == SHOWN[form]


def test_a_table_on_a_terminal_else_csv(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_over(StandardOutput())
    assert capsys.readouterr().out == SHOWN["csv"]
    terminal = TerminalText()
    monkeypatch.setattr(sys, "stdout", terminal)
    hand_over(StandardOutput())
    assert terminal.getvalue() == SHOWN["table"]


def test_csv_has_names_without_rows(capsys: pytest.CaptureFixture[str]) -> None:
    StandardOutput("csv").begin(None, ONE.schema)
    assert capsys.readouterr().out == "car,speed\n"


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(SinkError, match="'json' is not a format\nhint: it is one of table, csv"):
        StandardOutput("json")  # type: ignore[arg-type]


PROGRAM = """
import sys
import pyarrow as pa
from eventide.sinks import StandardOutput

rows = pa.record_batch({"word": ["x" * 1000] * 100})
sink = StandardOutput("FORM")
sink.begin("alerts", rows.schema)
sink.take(rows.slice(0, 2), 0)
sys.stdin.readline()  # until nobody reads any more
for number in range(1000):
    sink.take(rows, number * 100)
    if sink.ended.is_set():
        sink.take(rows, 0)
        sink.close()
        print("nobody reads this")
        sys.exit(7)
"""


@pytest.mark.parametrize("form", SHOWN)
def test_a_closed_pipe_ends_quietly(form: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.replace("FORM", form)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        # The first take is here while the program waits.
        assert process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"\n")
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 7
