"""A folder that may be replaced, and only such a one."""

from __future__ import annotations

import shutil
from pathlib import Path

from eventide.errors import StoreError

MARKER = ".eventide-demo"


def fresh_folder(folder: Path) -> Path:
    """Return an empty demo folder, in place of the last one; refuse a folder that is not one."""
    if folder.is_dir() and any(folder.iterdir()):
        if not (folder / MARKER).is_file():
            message = f"{folder} holds something that no demo wrote"
            raise StoreError(message, hint="choose another place with --folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).write_text("eventide demo writes this folder, and replaces it whole.\n")
    return folder
