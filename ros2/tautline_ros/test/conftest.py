"""Fixtures."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from stand import Stand  # noqa: E402

DOMAINS = iter(range(60, 100))


@pytest.fixture
def stand():
    """A stand that is closed after the test."""
    made = Stand(next(DOMAINS))
    yield made
    made.close()
