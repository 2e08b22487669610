"""Pages are followed word for word, on a real control plane, an embedded account and deployed functions."""

import sys

import pytest

from tests.guide.stories import STORIES, tell

pytestmark = [pytest.mark.controlplane, pytest.mark.loopback]


@pytest.mark.parametrize("name", STORIES)
def test_what_a_page_says_is_what_happens(name: str) -> None:
    said: list[str] = []
    try:
        tell(name, said.append)
    finally:
        sys.stdout.write("\n".join(said))
