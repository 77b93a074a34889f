"""What tests of live queries share."""

from __future__ import annotations

import pytest

from eventide.api.live import durable
from eventide.api.live.follower import Looked


@pytest.fixture
def unfollowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing happens but in the thread of the test."""
    monkeypatch.setattr("eventide.api.live.delivery.Delivery.look", lambda _: Looked(found=False))


@pytest.fixture
def every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint is written after every step."""
    monkeypatch.setattr(durable, "STEPS_BETWEEN", 1)
