"""The Python that Spark starts in tests: a fork of one that has imported everything before.

Spark starts dozens of processes: for a streaming query one beside the driver, workers for tasks,
some for each kind of question to a data source. Each would import PySpark, pandas and Eventide,
about two seconds of a processor. So this asks `server.py` for a fork, hands over its own files,
and ends as the fork does. Where no server runs, it is Python as usual.

To a worker that it starts for a streaming query Spark gives ten seconds to connect, and nothing can
change that number. On a machine that is busy enough, that is less than a start takes. So the
connection is made here, before anything else. After it Spark waits for as long as it takes.
"""

from __future__ import annotations

import json
import os
import runpy
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

STREAMING = "pyspark.sql.streaming."
SOCKET = "server"
"""The name of the server's socket, in the folder of this file."""


def connected(port: int, secret: bytes) -> socket.socket:
    """Return a connection to Spark that has told the secret."""
    found = socket.create_connection(("127.0.0.1", port))
    found.sendall(struct.pack(">i", len(secret)) + secret)
    with found.makefile("rb", 0) as reply:
        (length,) = struct.unpack(">i", reply.read(4))
        assert reply.read(length) == b"ok"
    return found


def run_connected(module: str, connection: socket.socket, port: int) -> None:
    """Run a worker of PySpark over a connection that is there already."""
    from pyspark import util, worker_util

    connect: Callable[..., Any] = util.local_connect_and_auth

    def connect_once(where: object, secret: object) -> Any:  # noqa: ANN401 - as PySpark has it
        if where != port:
            return connect(where, secret)
        return connection.makefile("rwb", 65536), connection

    for place in (util, worker_util):
        setattr(place, "local_connect_and_auth", connect_once)  # noqa: B010 - mypy knows its types
    run_module(module)


def run_module(module: str) -> None:
    """Run a module as `python -m` does, also if it has been imported."""
    sys.modules.pop(module, None)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def run_fork(server: socket.socket, connection: socket.socket | None) -> int:
    """Have a fork run what this was to run, with the files of this; return how it ended."""
    files = [0, 1, 2] if connection is None else [0, 1, 2, connection.fileno()]
    wanted = {"arguments": sys.argv[1:], "environment": dict(os.environ), "folder": str(Path.cwd())}
    sent = json.dumps(wanted).encode()
    socket.send_fds(server, [struct.pack(">i", len(sent))], files)
    server.sendall(sent)
    if connection is not None:
        connection.close()
    return (server.recv(1) or b"\1")[0]


def main() -> None:
    """Do as `python` does, but connect first where that is what Spark waits for."""
    arguments = sys.argv[1:]
    if arguments[:1] != ["-m"]:
        os.execv(sys.executable, [sys.executable, *arguments])
    connection, port = None, int(os.environ.get("PYTHON_WORKER_FACTORY_PORT", "0"))
    if port and arguments[1].startswith(STREAMING):
        secret = os.environ["PYTHON_WORKER_FACTORY_SECRET"].encode()
        connection = connected(port, secret)
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(str(Path(__file__).with_name(SOCKET)))
        except OSError:
            if connection is None:
                os.execv(sys.executable, [sys.executable, *arguments])
            return run_connected(arguments[1], connection, port)
        os._exit(run_fork(server, connection))


if __name__ == "__main__":
    main()
