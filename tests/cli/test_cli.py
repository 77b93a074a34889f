"""The command line: what it prints, where, and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

from eventide.api.database import Database, open_database
from eventide.cli import eventide
from eventide.errors import StoreError

CSV = """ts,car,speed
2026-03-02T08:00:00Z,a,10.5
2026-03-02T08:00:01Z,b,
2026-03-02T08:01:00Z,a,30
"""


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(eventide, [str(each) for each in arguments], input=stdin)


def run_process(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    code = "from eventide.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "cars.csv"
    path.write_text(CSV)
    return path


@pytest.fixture
def database(csv: Path, tmp_path: Path) -> Path:
    path = tmp_path / "traffic.ev"
    assert run("ingest", csv, "--into", path, "--stream", "cars").exit_code == 0
    return path


def files_in(folder: Path) -> dict[str, bytes]:
    """What a database holds on disk, byte by byte; lock files come and go."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def rows_in(path: Path) -> int:
    return len(Database(path).stream("cars"))


# --- help ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["ingest", "sql", "explain", "streams", "demo"])
def test_help_has_an_example_and_fits_the_terminal(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"    eventide {command}" in result.output
    assert "--debug" in result.output


def test_help_lists_the_commands_in_the_order_one_needs_them() -> None:
    output = run("--help").output
    places = [output.index(f"\n  {name} ") for name in ("ingest", "sql", "explain", "streams")]
    assert places == sorted(places)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from eventide.cli import eventide\n"
        "eventide(['--help'], standalone_mode=False)\n"
        "heavy = {'pyarrow', 'numpy', 'numba', 'duckdb', 'sqlglot', 'pyspark'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_version() -> None:
    assert run("--version").output.startswith("eventide ")


# --- ingest ----------------------------------------------------------------------------------


def test_ingest_creates_the_stream_and_says_what_it_stored(csv: Path, tmp_path: Path) -> None:
    result = run("ingest", csv, csv, "--into", tmp_path / "new.ev", "--stream", "cars")
    assert result.exit_code == 0
    assert "created stream cars (car string, speed float64)" in result.stderr
    assert result.stdout.startswith("stored 6 events in cars, ")
    assert "it spans 2026-03-02 08:00:00 to 08:01:00" in result.stdout


def test_ingest_appends_to_a_stream_that_exists(csv: Path, database: Path) -> None:
    result = run("ingest", csv, "--into", database, "--stream", "cars", "--no-progress")
    assert "created" not in result.stderr
    assert rows_in(database) == 6


def test_the_stream_decides_the_types_and_not_what_a_file_looks_like(tmp_path: Path) -> None:
    path, into = tmp_path / "e.jsonl", ("--into", tmp_path / "x.ev", "--stream", "s")
    path.write_text('{"ts": 1, "price": "1.50"}\n')
    assert run("ingest", path, *into, "--attribute", "price:decimal(9,2)").exit_code == 0
    path.write_text('{"ts": 2, "price": 1}\n{"ts": 3, "price": "2.25"}\n')
    assert run("ingest", path, *into).exit_code == 0
    path.write_text("")
    assert "stored 0 events" in run("ingest", path, *into).stdout
    path.write_text('{"ts": 4, "price": true}\n')
    result = run("ingest", path, *into)
    assert "line 1, column 'price': True does not fit decimal(9,2)" in result.stderr
    assert len(Database(tmp_path / "x.ev").stream("s")) == 3


def test_ingest_takes_the_time_from_any_column_and_types_from_the_user(tmp_path: Path) -> None:
    path = tmp_path / "prices.jsonl"
    path.write_text('{"at": 1, "price": "1.50"}\n')
    into = ("--into", tmp_path / "x.ev", "--stream", "prices", "--ts", "at")
    result = run("ingest", path, *into, "--attribute", "price:decimal(10,2)")
    assert result.exit_code == 0, result.stderr
    assert "price decimal(10,2)" in result.stderr


def test_an_error_in_any_file_leaves_the_database_as_it_was(
    csv: Path, database: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text(CSV + "2026-03-02T08:02:00Z,a,fast\n")
    before = files_in(database)
    result = run("ingest", csv, bad, "--into", database, "--stream", "cars")
    assert result.exit_code == 1
    assert "bad.csv, line 5, column 'speed': 'fast' does not fit float64" in result.stderr
    assert "Traceback" not in result.stderr
    assert files_in(database) == before


def test_an_error_leaves_no_new_stream_behind(csv: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text(CSV + ",a,1\n")
    result = run("ingest", csv, bad, "--into", tmp_path / "new.ev", "--stream", "cars")
    assert result.exit_code == 1
    assert "created" not in result.stderr
    assert Database(tmp_path / "new.ev").streams() == ()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["missing.csv"], "there is no file missing.csv"),
        (["cars.xlsx"], "there is no file"),
        (["cars.csv", "--attribute", "speed"], "is not NAME:TYPE"),
        (["cars.csv", "--attribute", "speed:quick"], "unknown type 'quick'"),
        (["cars.csv", "--attribute", "a:string", "--attribute", "a:string"], "is given twice"),
    ],
)
def test_ingest_that_is_asked_wrongly(
    arguments: list[str], told: str, csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(csv.parent)
    result = run("ingest", *arguments, "--into", "new.ev", "--stream", "cars")
    assert result.exit_code == 2
    assert told in result.stderr
    assert "hint: " in result.stderr
    assert not Path("new.ev").exists()


def test_a_missing_time_column_names_the_option(csv: Path, tmp_path: Path) -> None:
    result = run("ingest", csv, "--into", tmp_path / "x.ev", "--stream", "s", "--ts", "when")
    assert result.exit_code == 1
    assert "--ts COLUMN" in result.stderr


def test_a_missing_time_column_of_a_stream_that_exists(csv: Path, database: Path) -> None:
    result = run("ingest", csv, "--into", database, "--stream", "cars", "--ts", "when")
    assert result.exit_code == 1
    assert "--ts COLUMN" in result.stderr


def test_attributes_that_contradict_the_stream(csv: Path, database: Path) -> None:
    into = ("--into", database, "--stream", "cars", "--attribute", "car:int64")
    result = run("ingest", csv, *into)
    assert result.exit_code == 2
    assert "it has car string, speed float64" in result.stderr


# --- sql -------------------------------------------------------------------------------------

QUERY = "SELECT ts, car, speed FROM cars ORDER BY ts"


def test_rows_are_csv_without_a_terminal(database: Path) -> None:
    result = run("sql", database, QUERY)
    assert result.stdout.splitlines() == [
        "ts,car,speed",
        "2026-03-02T08:00:00Z,a,10.5",
        "2026-03-02T08:00:01Z,b,",
        "2026-03-02T08:01:00Z,a,30.0",
    ]


def test_rows_as_json_lines_from_a_query_on_stdin(database: Path) -> None:
    result = run("sql", database, "-", "--format", "jsonl", stdin=QUERY)
    assert json.loads(result.stdout.splitlines()[1]) == {
        "ts": "2026-03-02T08:00:01Z",
        "car": "b",
        "speed": None,
    }


def test_rows_as_a_table(database: Path) -> None:
    result = run("sql", database, QUERY, "--format", "table", "--limit-rows", "2", "--time")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["ts", "car", "speed"]
    assert lines[2].endswith(" 10.5")
    assert lines[3].endswith(" null")
    assert lines[-1] == "3 rows, the first 2 shown"
    assert result.stderr.startswith("3 rows in ")


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.parquet"])
def test_a_file_gets_the_format_of_its_suffix(database: Path, tmp_path: Path, name: str) -> None:
    result = run("sql", database, QUERY, "--output", tmp_path / name)
    assert result.exit_code == 0
    assert result.stderr.replace("\n", "").startswith("wrote 3 rows to ")
    if name.endswith("parquet"):
        assert pa.parquet.read_table(tmp_path / name).num_rows == 3
    else:
        assert "2026-03-02T08:00:01Z" in (tmp_path / name).read_text()
    assert not list(tmp_path.glob(".*unfinished"))


def test_a_window_query(database: Path) -> None:
    text = """SELECT car, window_start, AVG(speed) AS mean FROM cars
              GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE) ORDER BY window_start, car"""
    assert run("sql", database, text).stdout.splitlines()[1:] == [
        "a,2026-03-02T08:00:00Z,10.5",
        "b,2026-03-02T08:00:00Z,",
        "a,2026-03-02T08:01:00Z,30.0",
    ]


def test_a_mistake_in_the_query_is_pointed_at(database: Path) -> None:
    result = run("sql", database, "SELECT sped FROM cars")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "error: no column 'sped' in cars",
        "  SELECT sped FROM cars",
        "         ^^^^",
        "hint: did you mean 'speed'?",
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["SELEC x"], "error: "),
        (["SELECT * FROM lorries"], "no stream 'lorries'"),
        (["  "], "the query is empty"),
        ([QUERY, "--format", "parquet"], "Parquet cannot go to the terminal"),
        ([QUERY, "--output", "rows.txt"], "cannot tell the format of rows.txt"),
        ([QUERY, "--format", "xml"], "'xml' is not one of"),
        ([QUERY, "--wrong"], "No such option"),
        ([], "Missing argument"),
    ],
)
def test_queries_that_are_asked_wrongly(database: Path, arguments: list[str], told: str) -> None:
    result = run("sql", database, *arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""


def test_the_name_of_a_file_is_not_a_query(database: Path, tmp_path: Path) -> None:
    file = tmp_path / "fast.sql"
    file.write_text(QUERY)
    for command in ("sql", "explain"):
        result = run(command, database, file)
        assert result.exit_code == 2
        assert f"hint: that is a file: write - < {file}" in result.stderr
    assert run("sql", database, f"{QUERY} {'-- long ' * 1000}").exit_code == 0


@pytest.mark.parametrize("command", [["sql", "x.ev", "SELECT 1"], ["streams", "x.ev"]])
def test_a_database_that_is_not_there_is_not_created(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*command)
    assert result.exit_code == 1
    assert "is not an Eventide database" in result.stderr
    assert not Path("x.ev").exists()


@pytest.mark.parametrize("form", ["table", "csv"])
def test_a_file_that_cannot_be_written(database: Path, tmp_path: Path, form: str) -> None:
    target = tmp_path / "none" / "rows.csv"
    result = run("sql", database, QUERY, "--format", form, "--output", target)
    assert result.exit_code == 1
    assert "cannot write" in result.stderr


@pytest.mark.parametrize("form", ["table", "csv"])
def test_pipes_and_links_are_written_to_and_not_replaced(
    database: Path, tmp_path: Path, form: str
) -> None:
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "file"
    os.mkfifo(pipe)
    link.symlink_to(file)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    for target in (pipe, link):
        result = run("sql", database, QUERY, "--format", form, "--output", target)
        assert result.exit_code == 0, result.stderr
    assert os.read(reader, 10_000) == file.read_bytes()
    os.close(reader)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert b"30" in file.read_bytes()


def test_the_error_of_a_file_is_told_even_if_tidying_up_fails(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object) -> None:
        message = "another writer"
        raise StoreError(message)

    monkeypatch.setattr("eventide.store.StoredStream.discard", locked)
    bad = tmp_path / "bad.csv"
    bad.write_text(CSV + ",a,1\n")
    result = run("ingest", bad, "--into", database, "--stream", "cars")
    assert result.exit_code == 1
    assert "line 5, column 'ts': there is no time" in result.stderr


# --- explain and streams ---------------------------------------------------------------------


def test_explain_prints_the_plan(database: Path) -> None:
    result = run("explain", database, "SELECT car FROM cars WHERE speed > 5")
    assert result.exit_code == 0
    assert "Scan cars" in result.stdout


def test_streams_lists_what_there_is(database: Path) -> None:
    open_database(database).create_stream("empty", {"x": "int64"})
    head, _, cars, empty = run("streams", database).stdout.splitlines()
    assert head.split()[:2] == ["stream", "events"]
    assert cars.split()[:2] == ["cars", "3"]
    assert "2026-03-02 08:00:00 to 08:01:00" in cars
    assert cars.rstrip().endswith("car string, speed float64")
    assert empty.split() == ["empty", "0", "0", "bytes", "x", "int64"]


def test_no_streams_yet(tmp_path: Path) -> None:
    open_database(tmp_path / "new.ev")
    assert "no streams yet" in run("streams", tmp_path / "new.ev").stdout


# --- what goes wrong -------------------------------------------------------------------------


def test_an_unexpected_error_is_one_sentence(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        message = "bad luck"
        raise RuntimeError(message)

    monkeypatch.setattr(Database, "sql", broken)
    result = run("sql", database, QUERY)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: unexpected RuntimeError: bad luck",
        "hint: run again with --debug to see where",
    ]
    asked = ["sql", str(database), QUERY]
    for arguments in (["--debug", *asked], [*asked, "--debug"]):
        result = run(*arguments)
        assert result.exit_code == 1
        assert "Traceback" in result.stderr
        assert "run again" not in result.stderr


def test_an_interrupt_has_its_exit_code(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Database, "sql", interrupted)
    result = run("sql", database, QUERY)
    assert (result.exit_code, result.stderr) == (130, "error: interrupted\n")


def test_a_real_process_keeps_results_and_errors_apart(database: Path) -> None:
    good = run_process("sql", database, QUERY)
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("ts,car,speed\n")
    bad = run_process("sql", database, "SELECT sped FROM cars")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "\x1b" not in bad.stderr


def test_colours_where_the_terminal_can(database: Path) -> None:
    environment = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    bad = run_process("sql", database, "SELECT sped FROM cars", env=environment)
    assert "\x1b[1;31merror:" in bad.stderr


def test_a_reader_that_leaves_ends_it_quietly(tmp_path: Path) -> None:
    stream = open_database(tmp_path / "x.ev").create_stream("n", {"i": "int64"})
    stream.append(pa.table({"ts": range(200_000), "i": range(200_000)}))
    code = "from eventide.cli import main; main()"
    command = [sys.executable, "-c", code, "sql", str(tmp_path / "x.ev"), "SELECT * FROM n"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"ts,i\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141
