"""Pages are followed word for word, on a real control plane, an embedded account and deployed functions."""

import sys

import pytest

from tests.guide.stories import STORIES, play_story

pytestmark = [pytest.mark.controlplane, pytest.mark.loopback]


@pytest.mark.parametrize("name", STORIES)
def test_guide_page_commands_produce_the_documented_output(name: str) -> None:
    messages: list[str] = []
    try:
        play_story(name, messages.append)
    finally:
        sys.stdout.write("\n".join(messages))
