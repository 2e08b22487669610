"""The setting commitments: its permissions exist only with the setting, and are what `catalog` needs to read them."""

import pytest

from shared.model.cloud_provider.instance_type import Catalog
from shared.model.ec2.commitments import Commitments
from shared.store.catalog import iterate_newest_catalog_keys
from shared.store.catalog_format import decode_catalog
from shared.store.commitments import COMMITMENTS_KEY
from sim.authorization.template_policies import parse_function_policies
from sim.fault_tap import PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import World, make_node_class, make_node_pool

ACTIONS = {
    "off": set[str](),
    "bucket": {"ec2:DescribeInstances"},
    "account": {
        "ec2:DescribeInstances",
        "ec2:DescribeReservedInstances",
        "savingsplans:DescribeSavingsPlanRates",
        "savingsplans:DescribeSavingsPlans",
    },
}
DOCUMENT = b"""{"reservedInstances": [{"id": "ri", "instanceType": "m5.large", "count": 2, "usdPerHour": 0.06,
"end": "2100-01-01T00:00:00Z", "region": "us-east-1"}]}"""


def list_actions(source: str) -> dict[str, set[str]]:
    template = synthesize_template(settings=ACTIVE_SETTINGS | {"commitments": source})
    return {
        function: {action for statement in policy for action in statement.actions}
        for function, policy in parse_function_policies(template).items()
    }


@pytest.mark.parametrize("source", ["bucket", "account"])
def test_only_catalog_gets_the_permissions_and_only_with_the_setting(source: str) -> None:
    default_actions, actions = list_actions("off"), list_actions(source)
    assert {
        name: actions[name] - default_actions[name] for name in actions if actions[name] != default_actions[name]
    } == {"catalog": ACTIONS[source]}


def build_world(source: str) -> World:
    return World(template=synthesize_template(settings=ACTIVE_SETTINGS | {"commitments": source}))


def run_catalog(world: World) -> tuple[Catalog, set[str]]:
    """Create a node class; return the stored catalog, and the calls of `catalog`."""
    calls: list[PortCall] = []
    with world.use_tap(calls.append):
        world.apply([make_node_class(), make_node_pool()])
        world.advance_seconds(120)
    body = world.bucket.get(next(iterate_newest_catalog_keys(world.bucket)))
    return decode_catalog(body), {call.method for call in calls if call.world_name.startswith("catalog")}


def test_account_is_read_with_the_permissions_of_the_role() -> None:
    world = build_world("account")
    now = world.clock.get_time()
    reserved = world.cloud.commitments.add_reserved("m5.large", 2, now)
    plan = world.cloud.commitments.add_plan(1.0, now)
    catalog, calls = run_catalog(world)
    assert catalog.commitments == Commitments(reserved=(reserved,), plans=(plan,))
    assert calls >= {"describe_savings_plans", "describe_reserved_instances", "describe_other_instances"}
    assert not world.list_errors()


def test_document_in_the_bucket_is_read_with_the_permissions_of_the_role() -> None:
    world = build_world("bucket")
    world.bucket.put(COMMITMENTS_KEY, DOCUMENT)
    catalog, calls = run_catalog(world)
    assert catalog.commitments is not None
    assert [item.reservation_id for item in catalog.commitments.reserved] == ["ri"]
    assert not calls & {"describe_savings_plans", "describe_reserved_instances"}
    assert not world.list_errors()


def test_without_the_setting_nothing_is_read_or_stored() -> None:
    world = build_world("off")
    world.bucket.put(COMMITMENTS_KEY, DOCUMENT)
    world.cloud.commitments.add_plan(1.0, world.clock.get_time())
    catalog, calls = run_catalog(world)
    assert catalog.commitments is None
    assert not calls & {"describe_savings_plans", "describe_reserved_instances", "describe_other_instances"}
