"""The DuckDB that runs the rest of queries."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pytest

from eventide.engines.history.rest import engine, run_rest
from eventide.errors import BindError

NUMBERS = pa.table({"x": [3, 1, 2]})
FORK = """
import os, sys
import pyarrow as pa
import eventide as ev
def ask():
    rows = ev.sql("SELECT x FROM t ORDER BY x LIMIT 1", t=pa.table({"x": [3, 1, 2]})).rows()
    assert rows == [{"x": 1}], rows
ask()
child = os.fork()
if child == 0:
    ask()
    sys.exit()
ask()
_, status = os.waitpid(child, 0)
sys.exit(status)
"""


def test_queries_share_one_database_but_no_tables() -> None:
    found = run_rest("SELECT x FROM t ORDER BY x", {"t": NUMBERS})
    assert found.to_pydict() == {"x": [1, 2, 3]}
    assert engine() is engine()
    with pytest.raises(BindError, match="t does not exist"):
        run_rest("SELECT x FROM t", {})


def test_a_table_of_the_same_name_is_another_one() -> None:
    text = "SELECT SUM(x) AS total FROM t"
    assert run_rest(text, {"t": NUMBERS}).to_pydict() == {"total": [6]}
    assert run_rest(text, {"t": pa.table({"x": [1.5]})}).to_pydict() == {"total": [1.5]}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_forked_child_asks_a_database_of_its_own_and_ends() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
