"""The envelope of a written state: a checksum, a version, the owner, and the state.

    EvSt │ checksum │ version │ length │ owner          │ state
     4 B │      4 B │     4 B │    4 B │ JSON, `length` │ …

The checksum (CRC-32C) is of everything behind it. The version counts changes of the format of any
state. The owner is a digest of everything that the state depends on, by which others refuse it, and
the same in words, which the error shows.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass

import google_crc32c

from eventide.errors import StateError, StateVersionError

MAGIC = b"EvSt"
VERSION = 3
QUERY = "query"
"""The name of the fact that holds the plan as text; the others are settings."""

_HEAD = struct.Struct("<4sI")
_ABOUT = struct.Struct("<II")
_WHOLE = "give it all the bytes that dump returned, as they were"


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a state: a digest of everything that it depends on, and the same in words."""

    name: str
    digest: str
    facts: Mapping[str, str]
    hint: str = "go on with the query and the settings that wrote it, or begin anew without it"

    def refusal(self, other: Owner) -> StateError:
        """Return why a state of another owner does not fit this one."""
        names = dict.fromkeys((*self.facts, *other.facts))
        differing = [name for name in names if self.facts.get(name) != other.facts.get(name)]
        if self.name != other.name:
            message = f"this is a state of {other.name}, not of {self.name}"
        elif not differing:
            message = (
                f"the state was written by another query, or by another release of Eventide: "
                f"what differs does not show in\n{_indented(self.facts.get(QUERY, self.name))}"
            )
        elif QUERY in differing or QUERY not in self.facts:
            message = "the state was written by another query"
        else:
            message = "the state was written by the same query with other settings"
        for name in differing:
            its, own = (facts.get(name, "none") for facts in (other.facts, self.facts))
            if name == QUERY:
                message += f"\nit was written by\n{_indented(its)}\nand this is\n{_indented(own)}"
            else:
                message += f"\n{name}: it was written with {its}, and this has {own}"
        return StateError(message, hint=self.hint)


def seal(owner: Owner, content: bytes) -> bytes:
    """Return a written state in its envelope."""
    entry = {"name": owner.name, "digest": owner.digest, "facts": dict(owner.facts)}
    whose = json.dumps(entry).encode()
    about = _ABOUT.pack(VERSION, len(whose)) + whose
    checksum = google_crc32c.extend(google_crc32c.value(about), content)
    return b"".join((_HEAD.pack(MAGIC, checksum), about, content))


def unseal(dumped: bytes) -> tuple[Owner, bytes]:
    """Return the owner of a sealed state, and its bytes; `StateError` if it is not whole."""
    if dumped[: len(MAGIC)] != MAGIC:
        message = f"these {len(dumped):,} bytes are damaged, or no state that Eventide has written"
        raise StateError(message, hint=_WHOLE)
    checked = dumped[_HEAD.size :]
    if len(checked) < _ABOUT.size or _HEAD.unpack_from(dumped)[1] != google_crc32c.value(checked):
        message = (
            f"the state is damaged or cut short: its {len(dumped):,} bytes fail their checksum"
        )
        raise StateError(message, hint=_WHOLE)
    version, length = _ABOUT.unpack_from(checked)
    if version != VERSION:
        message = f"the state is written in version {version}, and this release reads {VERSION}"
        raise StateVersionError(message, hint="read it with the release of Eventide that wrote it")
    end = _ABOUT.size + length
    return _owner_of(checked[_ABOUT.size : end]), checked[end:]


def unsealed_for(owner: Owner, dumped: bytes) -> bytes:
    """Return the bytes of a sealed state; `StateError` if it has another owner."""
    found, content = unseal(dumped)
    if (found.name, found.digest) != (owner.name, owner.digest):
        raise owner.refusal(found)
    return content


def _owner_of(whose: bytes) -> Owner:
    try:
        entry = json.loads(whose)
        facts = {str(name): str(fact) for name, fact in entry["facts"].items()}
        return Owner(str(entry["name"]), str(entry["digest"]), facts)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        message = "the state does not say whose it is"
        raise StateError(message, hint=_WHOLE) from error


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
