"""Every kind of request that the deployed functions send to AWS, with its reason, as stored in `aws-requests.toml`.

After an intended change, record the requests again, read the difference, and write the reason of each new request::

    .venv/bin/python -m tests.golden.aws_requests
"""

import sys
import tomllib
from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from shared.errors import Unreachable
from shared.model.ec2.account import CapacityReservation, PlacementGroup, SelectorTerm
from shared.report.costs.cost_ledger import CostLedger
from shared.report.costs.ledger_store import LEDGER_KEY
from shared.store.commands import ENDED_COMMAND_TTL
from sim.authorization.template_policies import map_function_role_arns
from sim.aws_rules.request_log import RequestKind, RequestLog, RequestUse
from sim.cloud.resources.payer_role import PAYER_ACCOUNT_ID
from sim.fault_tap import PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.infra.iam.payer_policies import DOCUMENTED_EXTERNAL_ID, build_permissions_policy, build_trust_policy
from tests.scenario.worlds import World, make_deployment, make_ec2_message, make_node_class, make_node_pool

FILE: Final = Path(__file__).with_name("aws-requests.toml")
HEADER: Final = """\
# Every kind of request that the deployed functions send to AWS. `python -m tests.golden.aws_requests` records the
# requests of simulated clusters and keeps the reasons; `docs/reference/aws-requests.md` is written from this file.
# An entry with `recorded = false` is written by hand: the simulation does not make the request.
"""
ROOT_VOLUME: Final = {
    "deviceName": "/dev/xvda",
    "rootVolume": True,
    "ebs": {
        "volumeSize": "30Gi",
        "volumeType": "gp3",
        "iops": 3000,
        "throughput": 125,
        "encrypted": True,
        "kmsKeyID": "alias/volumes",
        "deleteOnTermination": True,
    },
}
RESTORED_VOLUME: Final = {
    "deviceName": "/dev/xvdb",
    "ebs": {"snapshotID": "snap-0123456789abcdef0", "volumeInitializationRate": 200},
}
TOPIC: Final = "arn:aws:sns:us-east-1:111122223333:costs"
RESERVED_TYPE: Final = "m5.xlarge"
EXCHANGE_TIME: Final = timedelta(minutes=6)
"""Time in which nodes are replaced or removed."""


class StoredRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One entry of the file."""

    call: str
    """Service and operation, as ``ec2:DescribeInstances``."""
    selection: tuple[str, ...] = ()
    """The filters and parameters that select resources."""
    functions: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    reason: str
    recorded: bool = True

    @property
    def kind(self) -> RequestKind:
        """The kind of the request."""
        return RequestKind(call=self.call, selection=self.selection)


class _RequestFile(msgspec.Struct, forbid_unknown_fields=True):
    request: list[StoredRequest]


def load_requests() -> list[StoredRequest]:
    """Return the entries of the file."""
    return msgspec.convert(tomllib.loads(FILE.read_text()), _RequestFile).request


@cache
def record_requests() -> RequestLog:
    """Return the requests of all functions in a few simulated clusters that use every option of a node class."""
    log = RequestLog()
    for build_world in (
        build_ordinary_world,
        build_reporting_world,
        build_selective_world,
        build_reserved_world,
        build_committed_world,
        build_shifted_world,
    ):
        log.merge(build_world().request_checks.log)
    return log


def build_ordinary_world() -> World:
    """Return a cluster after a lost response, an interruption, a drift and a scale-down."""
    settings = {**ACTIVE_SETTINGS, "metrics": "all", "event-bus": "alerts"}
    pool = make_node_pool(
        capacity=("spot", "on-demand"),
        types=("m5.large", "m5.xlarge"),
        disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"},
    )
    world = World(
        make_node_class(tags={"team": "shop"}),
        pool,
        make_deployment(4),
        template=synthesize_template(settings=settings),
    )
    lost_calls: list[PortCall] = []

    def lose_response(call: PortCall) -> None:
        if (call.method, call.phase) == ("create_fleet", "after") and not lost_calls:
            lost_calls.append(call)
            raise Unreachable("ec2:CreateFleet: the response is lost")

    with world.use_tap(lose_response):
        world.wait_until_settled(4)
    (instance, *_) = world.list_active_instances()
    world.interrupt(make_ec2_message("EC2 Spot Instance Interruption Warning", instance.instance_id))
    world.cloud.set_capacity(0, capacity_type="spot")
    world.apply([make_node_class(tags={"team": "stage"})])
    world.advance_time(EXCHANGE_TIME)
    world.scale(1)
    world.advance_time(EXCHANGE_TIME)
    world.run(ENDED_COMMAND_TTL)
    return world


def build_reporting_world() -> World:
    """Return a cluster whose costs of yesterday are reported, and that is watched for pending pods."""
    settings = {**ACTIVE_SETTINGS, "report-topic": TOPIC, "reaction": "watch"}
    world = World(make_node_class(), make_node_pool(), template=synthesize_template(settings=settings))
    today = world.clock.get_time().replace(hour=0, minute=0, second=0, microsecond=0)
    hour = timedelta(hours=1)
    ledger = CostLedger(since=today - 24 * hour, until=today - hour)
    world.bucket.put(LEDGER_KEY, msgspec.json.encode(ledger))
    world.apply([make_deployment(1)])
    world.wait_until(lambda: world.topic.published_messages, timeout=1200)
    return world


def build_selective_world() -> World:
    """Return a cluster with node classes that use every selector and every option of a launch template."""
    world = World(types=("m5.large", "p5.48xlarge"))
    cloud = world.cloud
    group_id = cloud.reservations.add_group(PlacementGroup(group_id="", name="spread", strategy="spread"))
    image = next(iter(cloud.images.select((SelectorTerm(name="*al2023*x86_64*", owner="amazon"),))))
    (security_group, *_) = cloud.network.select_security_groups((SelectorTerm(name="*"),))
    subnets = [{"id": subnet_id} for subnet_id in sorted(cloud.network.subnets)]
    named_image = [{"name": image.name}]
    node_classes: dict[str, dict[str, Any]] = {
        "ids": {
            "subnetSelectorTerms": subnets,
            "securityGroupSelectorTerms": [{"id": security_group.group_id}],
            "amiFamily": "AL2023",
            "amiSelectorTerms": [{"id": image.image_id}],
            "placementGroupSelector": {"id": group_id},
            "associatePublicIPAddress": True,
            "connectionTracking": {"tcpEstablishedTimeout": 300, "udpStreamTimeout": 90, "udpTimeout": 45},
            "cpuOptions": {"nestedVirtualization": "disabled"},
            "context": "context",
            "detailedMonitoring": True,
            "ipPrefixCount": 1,
            "blockDeviceMappings": [ROOT_VOLUME, RESTORED_VOLUME],
        },
        "names": {
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "demo"}}],
            "securityGroupSelectorTerms": [{"name": security_group.name}],
            "amiFamily": "AL2023",
            "amiSelectorTerms": named_image,
            "placementGroupSelector": {"name": "spread"},
        },
        "owners": {"amiFamily": "AL2023", "amiSelectorTerms": [{"name": image.name, "owner": "amazon"}]},
        "tags": {
            "amiFamily": "AL2023",
            "amiSelectorTerms": [{"tags": {"team": "shop"}}, {"tags": {"team": "*"}}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "demo"}}],
        },
        "cards": {
            "networkInterfaces": [
                {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
                {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
            ]
        },
    }
    for name, spec in node_classes.items():
        world.apply([make_node_class(name, **spec)])
        world.apply([make_node_pool(name, class_name=name, types=("p5.48xlarge" if name == "cards" else "m5.large",))])
        world.apply([make_deployment(1, name, nodeSelector={"karpenter.sh/nodepool": name})])
    world.advance_time(EXCHANGE_TIME)
    return world


def build_reserved_world() -> World:
    """Return a cluster with nodes in capacity reservations of each type."""
    world = World(types=(RESERVED_TYPE, "c5.xlarge", "m5.2xlarge"))
    ends_at = world.clock.get_time() + timedelta(days=3)
    reservations = {
        "default": CapacityReservation(reservation_id="", instance_type=RESERVED_TYPE, zone="us-east-1a"),
        "block": CapacityReservation(
            reservation_id="",
            instance_type="c5.xlarge",
            zone="us-east-1a",
            reservation_type="capacity-block",
            ends_at=ends_at,
        ),
        "interruptible": CapacityReservation(
            reservation_id="", instance_type="m5.2xlarge", zone="us-east-1a", is_interruptible=True
        ),
    }
    terms: dict[str, list[dict[str, Any]]] = {
        "block": [
            {"tags": {"purpose": "block"}, "ownerID": "123456789012"},
            {"tags": {"purpose": "block"}},
            {"tags": {"team": "*"}},
        ],
        "interruptible": [{"tags": {"purpose": "interruptible"}, "instanceMatchCriteria": "targeted"}],
    }
    for name, reservation in reservations.items():
        counts = {"available_count": 4, "total_count": 4}
        reservation_id = world.cloud.reservations.add(
            msgspec.structs.replace(reservation, **counts), (("purpose", name),)
        )
        term = terms.get(name, [{"id": reservation_id}])
        types = (reservation.instance_type,)
        world.apply([make_node_class(name, capacityReservationSelectorTerms=term)])
        world.apply([make_node_pool(name, class_name=name, capacity=("reserved",), types=types)])
        world.apply([make_deployment(1, name, nodeSelector={"karpenter.sh/nodepool": name})])
    world.advance_time(EXCHANGE_TIME)
    return world


def build_committed_world() -> World:
    """Return a cluster in an account with a Savings Plan and Reserved Instances, and with a payer account."""
    template = synthesize_template(
        settings={
            **ACTIVE_SETTINGS,
            "commitments": "account",
            "commitments-role": f"arn:aws:iam::{PAYER_ACCOUNT_ID}:role/joiner-commitments",
            "commitments-external-id": DOCUMENTED_EXTERNAL_ID,
        }
    )
    world = World(template=template)
    trust_policy = build_trust_policy(map_function_role_arns(template)["catalog"])
    world.cloud.payer.create_role("joiner-commitments", trust_policy, build_permissions_policy())
    world.cloud.commitments.add_plan(1.0, world.clock.get_time())
    world.cloud.commitments.add_reserved("m5.large", 1, world.clock.get_time())
    world.apply([make_node_class(), make_node_pool()])
    world.advance_time(EXCHANGE_TIME)
    return world


def build_shifted_world() -> World:
    """Return a cluster whose zonal shifts are read."""
    world = World(template=synthesize_template(settings={**ACTIVE_SETTINGS, "zonal-shift": "on"}))
    world.cloud.zonal_shifts.enable()
    world.apply([make_node_class(), make_node_pool(), make_deployment(1)])
    world.advance_time(EXCHANGE_TIME)
    return world


def update_requests(log: RequestLog) -> list[StoredRequest]:
    """Return the entries for the recorded requests, with the reasons of the file, and the entries written by hand."""
    stored_requests = load_requests() if FILE.exists() else []
    reason_by_kind = {request.kind: request.reason for request in stored_requests}
    recorded = [build_request(kind, use, reason_by_kind.get(kind, "")) for kind, use in sorted(log.use_by_kind.items())]
    return recorded + [request for request in stored_requests if not request.recorded]


def build_request(kind: RequestKind, use: RequestUse, reason: str) -> StoredRequest:
    """Return the entry of one kind of request."""
    return StoredRequest(
        call=kind.call,
        selection=kind.selection,
        functions=tuple(sorted(use.functions)),
        parameters=tuple(sorted(use.parameters)),
        reason=reason,
    )


def format_requests(requests: Iterable[StoredRequest]) -> str:
    """Return the text of the file."""
    return "\n".join([HEADER, *("\n".join(_format_request(request)) + "\n" for request in requests)])


def _format_request(request: StoredRequest) -> Iterator[str]:
    yield "[[request]]"
    for name, value in msgspec.to_builtins(request).items():
        if name == "parameters" and value:
            yield "parameters = ["
            yield from (f"  {_format_value(parameter)}," for parameter in value)
            yield "]"
        elif value not in ((), [], True):
            yield f"{name} = {_format_value(value)}"


def _format_value(value: object) -> str:
    return msgspec.json.encode(value).decode().replace('","', '", "')


if __name__ == "__main__":
    FILE.write_text(format_requests(update_requests(record_requests())))
    sys.stdout.write(f"{FILE}\n")
