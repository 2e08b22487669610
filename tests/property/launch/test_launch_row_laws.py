"""Laws of launch group rows: DynamoDB accepts each row that is written, and what is written is read back."""

from base64 import b64encode
from datetime import UTC, datetime
from hashlib import shake_256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Invalid
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.core.metadata import Problem
from shared.model.ec2.fleet import FleetError, FleetInstance, FleetRequest, FleetResult, LaunchTemplateConfig, Override
from shared.model.ec2.launch_template import LaunchTemplate
from shared.store.launch_groups import ROW_KIND, read_launch_groups
from shared.store.table_rows import MAX_PLAIN_BODY_BYTES, encode_body
from sim.world.memory_ports import MemoryTable
from tests.support.hypothesis_profiles import limit_examples

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
MAX_USER_DATA_BYTES = 16 * 1024
"""EC2's limit, before base64."""


def build_user_data(seed: int, length: int, number: int) -> str:
    """Return incompressible user data of a node class, as the launch template *number* has it: with its own prefix."""
    prefix = f"maxPods: {number}{'#' * (number % 3)}\n".encode()
    return b64encode((prefix + shake_256(str(seed).encode()).digest(length))[:MAX_USER_DATA_BYTES]).decode()


def build_launch_group(seed: int, length: int, template_count: int, claim_count: int = 1) -> LaunchGroup:
    templates = tuple(
        LaunchTemplate(
            name=f"joiner/c/{number:032}",
            image_id="ami-0123456789abcdef0",
            user_data=build_user_data(seed, length, number),
        )
        for number in range(template_count)
    )
    overrides = tuple(
        Override(instance_type=f"c7gn.{n}xlarge", zone="us-east-1a", subnet_id=f"subnet-{n:017}", priority=float(n))
        for n in range(300)
    )
    request = FleetRequest(
        client_token="token",  # noqa: S106 - no password
        capacity=claim_count,
        capacity_type="spot",
        allocation_strategy="price-capacity-optimized",
        configs=(LaunchTemplateConfig(launch_template_name=templates[0].name, overrides=overrides),),
    )
    return LaunchGroup(
        name="token",
        claims=tuple(f"default-{number:05}" for number in range(claim_count)),
        uids=tuple(f"{number:032}" for number in range(claim_count)),
        request=request,
        templates=templates,
        created_at=NOW,
    )


def encode_group(group: LaunchGroup) -> str:
    return encode_body(group, group.name, "shorten the user data")


def add_largest_result(group: LaunchGroup) -> LaunchGroup:
    """Return *group* with an instance for each claim and an error for each override."""
    instances = tuple(
        FleetInstance(
            instance_id=f"i-0{shake_256(name.encode()).hexdigest(8)}",
            instance_type="c7gn.16xlarge",
            zone="us-east-1a",
            subnet_id="subnet-0123456789abcdef0",
            image_id="ami-0123456789abcdef0",
            capacity_type="spot",
        )
        for name in group.claims
    )
    errors = tuple(
        FleetError(code="InsufficientInstanceCapacity", message=f"{o.subnet_id}: {'no capacity, ' * 30}")
        for o in group.request.configs[0].overrides
    )
    return msgspec.structs.replace(group, result=FleetResult(fleet_id="fleet-1", instances=instances, errors=errors))


@limit_examples(25)
@given(st.integers(0, 2**32), st.integers(0, MAX_USER_DATA_BYTES), st.integers(1, 60), st.sampled_from((1, 500)))
def test_a_row_fits_and_is_read_back_whatever_its_user_data(
    seed: int, length: int, template_count: int, claim_count: int
) -> None:
    problems: list[Problem] = []
    group, table = build_launch_group(seed, length, template_count, claim_count), MemoryTable()
    row = table.write(ROW_KIND, group.name, encode_group(group), version=0, expires_at=NOW)
    assert read_launch_groups(table, datetime.min.replace(tzinfo=UTC), problems) == (group,)
    group_with_result = add_largest_result(group)
    table.write(ROW_KIND, group.name, encode_group(group_with_result), version=row.version)
    assert read_launch_groups(table, NOW, problems) == (group_with_result,)
    assert problems == []


def test_twenty_templates_with_16_kib_of_user_data_each_are_compressed() -> None:
    group = build_launch_group(1, MAX_USER_DATA_BYTES, 20)
    assert len(msgspec.json.encode(group)) > 400 * 1024
    assert len(encode_group(group)) < 100 * 1024


def test_a_small_row_is_stored_as_it_is() -> None:
    group = build_launch_group(1, 1000, 3)
    assert len(msgspec.json.encode(group)) < MAX_PLAIN_BODY_BYTES
    assert encode_group(group).encode() == msgspec.json.encode(group)


def test_incompressible_launch_row_is_rejected_before_it_is_written() -> None:
    templates = tuple(build_launch_group(seed, MAX_USER_DATA_BYTES, 1).templates[0] for seed in range(40))
    group = msgspec.structs.replace(build_launch_group(1, 1, 1), templates=templates)
    with pytest.raises(Invalid, match=r"token: the row has \d+ KiB, and DynamoDB stores at most 400 KiB"):
        encode_group(group)


@pytest.mark.parametrize("body", ['{"xz":"e30="}', '{"xz":"?"}', '{"xz":1}', '{"xz":""}'])
def test_a_compressed_row_that_cannot_be_read_is_a_problem(body: str) -> None:
    problems: list[Problem] = []
    table = MemoryTable()
    table.write(ROW_KIND, "a", body, version=0)
    assert read_launch_groups(table, NOW, problems) == ()
    assert [problem.name for problem in problems] == ["a"]
