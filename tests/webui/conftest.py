"""One Chromium for all tests of the page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.webui.browser import chromium

pytest.register_assert_rewrite("tests.webui.steps")


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Give it, with nothing of one test's pages left for the next."""
    with chromium() as found:
        yield found
