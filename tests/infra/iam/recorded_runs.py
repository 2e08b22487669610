"""Short runs in which the functions use every permission of their roles, and the IAM requests of these runs."""

from collections.abc import Callable
from datetime import timedelta
from functools import cache, partial
from typing import Final

import msgspec

from shared.cycles.setup.run_cycle import CATALOG_LEASE
from shared.store.catalog import NEWEST_CATALOG_KEY
from shared.store.lease import ROW_KIND as LEASE_KIND
from shared.store.lease import LeaseRow
from sim.authorization.template_policies import Template, map_function_role_arns
from sim.cloud.resources.payer_role import PAYER_ACCOUNT_ID
from sim.iam.patterns_and_variables import IamRequest
from sim.lambda_runtime.stack_template.generated_references import ACCOUNT_ID
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from sim.world.embedded_world import EmbeddedWorld
from sim.world.measurements import is_running
from tests.golden.aws_requests import (
    RESTORED_VOLUME,
    build_ordinary_world,
    build_reporting_world,
    build_reserved_world,
    build_selective_world,
)
from tests.infra.guarded import run_short_life
from tests.infra.iam.payer_policies import build_permissions_policy, build_trust_policy
from tests.scenario.operations.test_permissions import RUNS
from tests.scenario.worlds import (
    INTERRUPTIONS,
    World,
    make_deployment,
    make_ec2_message,
    make_node_class,
    make_node_pool,
)

COMMITMENTS_ROLE: Final = "joiner-commitments"
EXTERNAL_ID: Final = "joiner-prod"
KEY: Final = f"arn:aws:kms:us-east-1:{ACCOUNT_ID}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
BOOT_TIMEOUT: Final = timedelta(minutes=10)
WORKSPACE_URL: Final = "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-0a1b2c3d/api/v1/remote_write"
IMAGE_PARAMETER: Final = "/images/golden"
COMPLETE_SETTINGS: Final = ACTIVE_SETTINGS | {
    "feature-gates": "NodeOverlay=true,StaticCapacity=true,CapacityBuffer=true",
    "kms-keys": KEY,
    "commitments": "account",
    "commitments-role": f"arn:aws:iam::{PAYER_ACCOUNT_ID}:role/{COMMITMENTS_ROLE}",
    "commitments-external-id": EXTERNAL_ID,
    "reaction": "watch",
    "event-bus": "alerts",
    "remote-write-url": WORKSPACE_URL,
    "report-topic": f"arn:aws:sns:us-east-1:{ACCOUNT_ID}:costs",
    "ssm-parameters": IMAGE_PARAMETER,
    "tracing": "on",
}
"""Settings with which the roles of the functions have all permissions, except those for a VPC."""


@cache
def synthesize_complete_template() -> Template:
    """Return the stack whose roles have all permissions."""
    return synthesize_template(settings=COMPLETE_SETTINGS)


def build_encrypted_world() -> World:
    """Return a cluster whose image is in a parameter of the account, and whose volumes have a customer-managed key.

    The account has a Savings Plan, and its payer account a role that reads commitments.
    """
    world = World(template=dict(synthesize_complete_template()))
    world.cloud.commitments.add_plan(1.0, world.clock.get_time())
    caller_arn = map_function_role_arns(synthesize_complete_template())["catalog"]
    world.cloud.payer.create_role(
        COMMITMENTS_ROLE, build_trust_policy(caller_arn, EXTERNAL_ID), build_permissions_policy()
    )
    world.cloud.images.parameters[IMAGE_PARAMETER] = next(iter(world.cloud.images.parameters.values()))
    volume = {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi", "encrypted": True, "kmsKeyID": KEY}}
    node_class = make_node_class(
        amiFamily="AL2023",
        amiSelectorTerms=[{"ssmParameter": IMAGE_PARAMETER}],
        blockDeviceMappings=[volume, RESTORED_VOLUME],
    )
    world.apply([node_class, make_node_pool(), make_deployment(1)])
    world.wait_until(world.list_active_instances)
    return world


def build_watching_world() -> EmbeddedWorld:
    """Return a new cluster with the stack that has all permissions, in which nothing has run yet."""
    return EmbeddedWorld(template=synthesize_complete_template())


def run_interruption(world: EmbeddedWorld) -> None:
    """Launch a Spot instance for a pod and interrupt it."""
    world.apply([make_node_class(), make_node_pool(capacity=("spot",)), make_deployment(1)])
    world.run_until(lambda: any(map(is_running, world.cluster.list_pods("default"))), BOOT_TIMEOUT)
    [instance, *_] = world.list_active_instances()
    world.runtime.add(INTERRUPTIONS, make_ec2_message("EC2 Spot Instance Interruption Warning", instance.instance_id))
    world.run(timedelta(seconds=130))


def build_world_without_catalog_pointer() -> World:
    """Return a cluster in which every function looks for the newest catalog in the list of the bucket."""
    world = World(
        make_node_class(),
        make_node_pool(capacity=("spot",)),
        make_deployment(1),
        template=dict(synthesize_complete_template()),
    )
    world.wait_until_settled(1)
    world.bucket.put(NEWEST_CATALOG_KEY, b"")
    world.clear_container_caches()
    [instance] = world.list_active_instances()
    world.interrupt(make_ec2_message("EC2 Spot Instance Interruption Warning", instance.instance_id))
    world.advance_seconds(130)
    return world


def build_unlucky_world() -> World:
    """Return a cluster in which `catalog` meets another run, and the API server fails while `watch` lists the pods."""
    world = World(make_node_class(), make_node_pool(), template=dict(synthesize_complete_template()))
    row = world.table.read(LEASE_KIND, CATALOG_LEASE)
    version = row.version if row is not None else 0
    lease_row = LeaseRow(owner="another run", until=world.clock.get_time() + timedelta(minutes=10))
    world.table.write(LEASE_KIND, CATALOG_LEASE, msgspec.json.encode(lease_row).decode(), version=version)
    world.advance_time(timedelta(minutes=6))
    with world.fail_ports("kube", world_prefix="watch"):
        world.advance_seconds(70)
    return world


def build_redeployed_world() -> EmbeddedWorld:
    """Return a cluster in which the installer starts, CodeDeploy moves the aliases, and a schedule is not delivered."""
    world = build_watching_world()
    load_handle = world.runtime.load_handle
    world.runtime.load_handle = lambda _: lambda _event, _world: None
    world.runtime.invoke("installer", {})
    world.runtime.load_handle = load_handle
    world.run(timedelta(minutes=6))
    world.runtime.deploy_version()
    world.runtime.throttled_functions.add("provision")
    world.run(timedelta(minutes=2))
    return world


def run_permission_scenario(name: str) -> World:
    """Return the world after a run for the permissions in the cluster."""
    build_world, run = RUNS[name]
    world = build_world()
    run(world)
    return world


RECORDED_RUNS: Final[tuple[Callable[[], EmbeddedWorld], ...]] = (
    build_ordinary_world,
    build_reporting_world,
    build_selective_world,
    build_reserved_world,
    build_encrypted_world,
    build_world_without_catalog_pointer,
    build_unlucky_world,
    build_redeployed_world,
    partial(run_permission_scenario, "features"),
    lambda: run_short_life(synthesize_complete_template()),
)


@cache
def record_requests() -> tuple[tuple[str, IamRequest], ...]:
    """Return the IAM requests of all runs, each once, with the functions that made them."""
    requests = (item for build_world in RECORDED_RUNS for item in build_world().access_control.recent_requests)
    return tuple(
        {
            (function, request.action, request.resource, tuple(request.context.items())): (function, request)
            for function, request in requests
        }.values()
    )
