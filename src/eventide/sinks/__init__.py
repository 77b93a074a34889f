"""Hand results over.

contract.py         what a live query hands its rows to: `Sink`
rolled.py           rows in files of JSON lines or Parquet; rolled_folder.py has these files
into_stream.py      rows as events of a stream
webhook.py          rows as JSON in HTTP requests
standard_output.py  rows on standard output

files.py            rows as CSV, JSON lines or Parquet
text.py             rows as a table in a terminal or a notebook
growing_table.py    the same, while rows come
progress.py         the progress of long work
words.py            counts, times and sizes as text
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eventide.sinks.contract import Sink
    from eventide.sinks.into_stream import IntoStream
    from eventide.sinks.rolled import JsonLines, Parquet
    from eventide.sinks.standard_output import StandardOutput
    from eventide.sinks.webhook import Webhook, signature

# Names are looked up when they are used: who only prints a table needs none of them.
HOMES = {
    "IntoStream": "into_stream",
    "JsonLines": "rolled",
    "Parquet": "rolled",
    "Sink": "contract",
    "StandardOutput": "standard_output",
    "Webhook": "webhook",
    "signature": "webhook",
}

__all__ = [
    "IntoStream",
    "JsonLines",
    "Parquet",
    "Sink",
    "StandardOutput",
    "Webhook",
    "signature",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in HOMES:
        message = f"module 'eventide.sinks' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"eventide.sinks.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
