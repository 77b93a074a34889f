"""The Python that Spark starts in tests: it connects to Spark first, and imports then.

Spark gives a worker that it starts for a streaming query ten seconds to connect, and nothing can
change that number. The worker connects once it has imported all of PySpark, which takes longer on
a machine that is busy enough. After the connection Spark waits for as long as it takes.
"""

from __future__ import annotations

import os
import runpy
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any

STREAMING = "pyspark.sql.streaming."


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
    from pyspark import util

    connect: Callable[..., Any] = util.local_connect_and_auth

    def connect_once(where: object, secret: object) -> Any:  # noqa: ANN401 - as PySpark has it
        if where != port:
            return connect(where, secret)
        return connection.makefile("rwb", 65536), connection

    setattr(util, "local_connect_and_auth", connect_once)  # noqa: B010 - mypy knows its types
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main() -> None:
    """Do as `python` does, but connect first where that is what Spark waits for."""
    arguments = sys.argv[1:]
    port = os.environ.get("PYTHON_WORKER_FACTORY_PORT")
    if port is None or arguments[:1] != ["-m"] or not arguments[1].startswith(STREAMING):
        os.execv(sys.executable, [sys.executable, *arguments])
    secret = os.environ["PYTHON_WORKER_FACTORY_SECRET"].encode()
    run_connected(arguments[1], connected(int(port), secret), int(port))


if __name__ == "__main__":
    main()
