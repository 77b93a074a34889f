"""Whether a run looks for what others have not seen, and takes its time for it."""

from __future__ import annotations

import os

EXPLORING = bool(os.environ.get("EVENTIDE_EXPLORE"))
