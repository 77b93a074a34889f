"""Fork warm Pythons for Spark, as `python.py` asks for them.

python -m tests.warm.server SOCKET        until its standard input ends

It imports all that a worker could need, and starts no thread: a fork would not have it. A fork
takes over the files, the environment and the folder of the process that asked. It lives no longer
than that one: the end of their connection raises SIGIO, which ends it.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import pkgutil
import random
import select
import signal
import socket
import struct
import sys
import traceback
from importlib import import_module
from types import ModuleType

from tests.warm.python import run_connected, run_module


def import_everything() -> None:
    """Import what workers of any kind could need, and run one kernel, which readies numba.

    By then the socket is there, and who asks waits.
    """
    import numpy as np
    import pyspark.sql.streaming
    import pyspark.sql.worker

    import eventide
    from eventide.kernels.ordering import sorting_order

    for package in (eventide, pyspark.sql.worker, pyspark.sql.streaming):
        for name in names_within(package):
            if not name.startswith("eventide.cli") and not name.endswith("__main__"):
                import_module(name)
    import_module("pyspark.worker")
    sorting_order(np.array([2, 1]))


def names_within(package: ModuleType) -> list[str]:
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [module.name for module in found]


def become(asking: socket.socket) -> int:
    """Be the process that asks; return how it ends."""
    header, files, _, _ = socket.recv_fds(asking, 4, 4)
    (length,) = struct.unpack(">i", header)
    with asking.makefile("rb", 0) as told:
        text = b""
        while len(text) < length:
            text += told.read(length - len(text))
    wanted = json.loads(text)
    for place, file in enumerate(files[:3]):
        os.dup2(file, place)
        os.close(file)
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    sys.path += [path for path in os.environ.get("PYTHONPATH", "").split(":") if path]
    random.seed()
    sys.modules["numpy"].random.seed()
    fcntl.fcntl(asking, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(asking, fcntl.F_SETFL, fcntl.fcntl(asking, fcntl.F_GETFL) | os.O_ASYNC)
    _, module, *rest = wanted["arguments"]
    sys.argv = [module, *rest]
    try:
        if files[3:]:
            port = int(os.environ["PYTHON_WORKER_FACTORY_PORT"])
            run_connected(module, socket.socket(fileno=files[3]), port)
        else:
            run_module(module)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main(path: str) -> None:
    """Fork for everybody who asks."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(64)
        import_everything()
        gc.freeze()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            ready, _, _ = select.select([listening.fileno(), 0], [], [])
            if 0 in ready:
                return
            asking, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                code = become(asking)
                sys.stdout.flush()
                sys.stderr.flush()
                asking.sendall(bytes([code & 0xFF]))
                os._exit(0)
            asking.close()


if __name__ == "__main__":
    main(sys.argv[1])
