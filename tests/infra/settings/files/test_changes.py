"""A settings file can be changed without the loss of anything else in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.settings.files.changes import change_settings, render_settings_file
from infra.settings.files.reading import parse_settings, read_nodes
from infra.settings.files.selection import CLUSTERS_FOLDER
from infra.settings.settings import SETTING_NAMES, StackOptions

FILE = """\
# our cluster
mode: plan   # until Friday
tags:
  team: platform
# the budget of the platform team
log-days: 7
alarm-topic: >-
  arn:aws:sns:us-east-1:111122223333:pager

region: us-east-1
"""


def test_a_new_file_lists_every_setting_as_a_comment_with_its_default() -> None:
    text = render_settings_file()
    assert parse_settings(text, "demo") == StackOptions(cluster="demo")
    uncommented = "\n".join(
        line.removeprefix("# ")
        for line in text.splitlines()
        if line.removeprefix("# ").partition(":")[0] in SETTING_NAMES
    )
    assert set(read_nodes(uncommented)) == set(SETTING_NAMES)
    assert parse_settings(uncommented, "demo") == StackOptions(cluster="demo")
    assert text == (CLUSTERS_FOLDER / "example.yaml").read_text()


def test_a_change_replaces_the_comment_with_the_default() -> None:
    text = change_settings(render_settings_file(), {"reaction": "watch"})
    assert "\nreaction: watch\n" in text
    assert "# reaction:" not in text
    assert len(text.splitlines()) == len(render_settings_file().splitlines())


@pytest.mark.parametrize(
    ("name", "value", "old", "new"),
    [
        ("mode", "active", "mode: plan   #", "mode: active   #"),
        ("tags", {"team": "shop"}, "tags:\n  team: platform", 'tags: {"team": "shop"}'),
        ("log-days", "14", "log-days: 7", "log-days: 14"),
        ("region", "eu-west-1", "region: us-east-1", "region: eu-west-1"),
        ("alarm-topic", "", "alarm-topic: >-\n  arn:aws:sns:us-east-1:111122223333:pager", 'alarm-topic: ""'),
    ],
)
def test_a_change_keeps_all_other_lines(name: str, value: object, old: str, new: str) -> None:
    text = change_settings(FILE, {name: value})
    assert text == FILE.replace(old, new)


def test_a_setting_that_the_file_does_not_have_is_added_at_the_end() -> None:
    assert change_settings("mode: plan", {"windows": True}) == "mode: plan\nwindows: true\n"
    assert change_settings("", {"mode": "plan"}) == "mode: plan\n"


SETTINGS = st.dictionaries(
    st.sampled_from(("price-list", "scheduler-config", "kube-endpoint", "disruption-paused")),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=20)
    | st.lists(st.sampled_from(("a", "true", "7", "b: c"))),
    min_size=1,
)


@given(first=SETTINGS, second=SETTINGS)
def test_the_last_change_of_each_setting_is_in_the_file(first: dict[str, object], second: dict[str, object]) -> None:
    for original in (FILE, "# kube-endpoint: a\n# mode: active\n", ""):
        text = change_settings(change_settings(original, first), second)
        nodes = read_nodes(text)
        assert {name: nodes[name].value for name in first | second} == first | second
        kept_values = {name: node.value for name, node in read_nodes(original).items() if name not in first | second}
        assert {name: nodes[name].value for name in kept_values} == kept_values
