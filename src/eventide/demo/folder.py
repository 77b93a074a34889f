"""Replace the folder of an earlier demo, and no other folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from eventide.errors import StoreError

MARKER = ".eventide-demo"


def fresh_folder(folder: Path) -> Path:
    """Return an empty demo folder, in place of the last one; refuse any other folder."""
    place = folder.resolve()  # a link stays, what it points to is replaced
    try:
        if place.is_dir() and any(place.iterdir()):
            if not (place / MARKER).is_file():
                message = f"{folder} holds something that no demo wrote"
                raise StoreError(message, hint="choose another place with --folder")
            shutil.rmtree(place)
        place.mkdir(parents=True, exist_ok=True)
        (place / MARKER).write_text("eventide demo writes this folder, and replaces it whole.\n")
    except StoreError:
        raise
    except OSError as error:
        message = f"cannot write to {folder}: {error.strerror or error}"
        raise StoreError(message, hint="choose another place with --folder") from error
    return folder
