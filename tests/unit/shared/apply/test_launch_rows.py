"""Rows of launch groups with much user data."""

from hashlib import shake_256

import msgspec
import pytest

from shared.errors import Invalid
from sim.fault_tap import Killed
from tests.support.actions_world import Outside
from tests.unit.shared.apply.launch_taps import build_killing_tap, launch_group, read_stored_group


def test_oversized_launch_group_is_rejected_before_any_request() -> None:
    outside = Outside()
    group = outside.build_launch_group()
    names = tuple(f"template-{number}" for number in range(40))
    templates = tuple(
        msgspec.structs.replace(group.templates[0], name=name, user_data=shake_256(name.encode()).hexdigest(16_000))
        for name in names
    )
    with pytest.raises(Invalid, match="shorten the user data of the EC2NodeClass"):
        launch_group(msgspec.structs.replace(group, templates=templates), outside.build_world())
    assert read_stored_group(outside) is None
    assert outside.list_called_methods("ec2") == []


def test_launch_group_with_large_user_data_is_repeated_unchanged() -> None:
    outside = Outside()
    group = outside.build_launch_group()
    user_data = shake_256(b"user data").hexdigest(8_000)
    names = tuple(f"template-{number:02}" for number in range(40))
    extra_templates = tuple(
        msgspec.structs.replace(group.templates[0], name=name, user_data=user_data) for name in names
    )
    large_group = msgspec.structs.replace(group, templates=(*group.templates, *extra_templates))
    with pytest.raises(Killed):
        launch_group(large_group, outside.build_world(tap=build_killing_tap("ec2.ensure_launch_template before")))
    launched_group = launch_group(group, outside.build_world())
    assert launched_group.templates == large_group.templates
    assert len(outside.list_templates()) == 41
    assert len(outside.list_instances()) == 1
    assert read_stored_group(outside) == launched_group
