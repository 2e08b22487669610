"""Whom `joiner nodeclass` asks: the account of the caller's credentials, or the embedded cloud, over HTTP both."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from cli.files import InputError
from shared.aws.clients import Clients
from shared.aws.ec2 import BotoEc2
from shared.aws.eks import BotoEks
from shared.aws.pricing import BotoPrices
from shared.aws.ssm import BotoParameters
from shared.errors import Fault
from shared.launch.catalogues import knobs
from shared.launch.nodeclass import Found, filled
from shared.launch.probes import probe, refusal_findings
from shared.launch.type_room import Knobs, eni_limited_pods
from shared.launch.types import Market, instance_types
from shared.model.catalogue import InstanceType
from shared.model.ec2 import ClusterFacts, InstanceTypeInfo, Refusal
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import Problem
from shared.ports import Row, World
from shared.settings import Settings
from shared.snapshot.account import look

DEFAULT_REGION: Final = "us-east-1"
_CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "embedded", "AWS_SECRET_ACCESS_KEY": "embedded"}


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """One node class with what the account has for it."""

    node_class: EC2NodeClass
    """As its status would have it."""
    found: Found
    facts: ClusterFacts | None
    types: tuple[InstanceType, ...]
    refusals: tuple[Refusal, ...] = ()
    crowded: tuple[str, ...] = ()
    """Types that maxPods gives more pods than they have addresses, without prefixes."""


class _Unwritten:
    """A table in which nothing was ever written: nobody rehearsed a launch."""

    def read(self, kind: str, name: str) -> Row | None:
        """Answer nothing."""
        del kind, name
        return None


@contextmanager
def account(region: str) -> Iterator[tuple[Clients, datetime]]:
    """Open the account of the caller's credentials, and say what time it is.

    Raises:
        InputError: nobody says which region.
    """
    import boto3  # noqa: PLC0415 - half a second

    found = region or boto3.Session().region_name
    if not found:
        raise InputError("which region is not known: write --region, or set $AWS_REGION")
    clients = Clients(str(found))
    try:
        yield clients, datetime.now(UTC)
    finally:
        clients.close()


@contextmanager
def embedded(region: str, cluster: str) -> Iterator[tuple[Clients, datetime]]:
    """Open the embedded cloud, whose subnets and security group are tagged for *cluster*, and say what time it is."""
    from sim.clock import Clock  # noqa: PLC0415 - the simulator takes a second
    from sim.cloud.cloud import Cloud  # noqa: PLC0415
    from sim.http.server import EmbeddedAws  # noqa: PLC0415

    cloud = Cloud(Clock(), region=region or DEFAULT_REGION, cluster=cluster)
    before = {name: os.environ.get(name) for name in _CREDENTIALS}
    os.environ.update(_CREDENTIALS)
    try:
        with EmbeddedAws(cloud) as server:
            clients = Clients(cloud.region, endpoint_url=server.url)
            try:
                yield clients, cloud.clock.now()
            finally:
                clients.close()
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def resolve_all(
    classes: tuple[EC2NodeClass, ...], clients: Clients, settings: Settings, now: datetime, *, rehearses: bool
) -> tuple[tuple[Resolved, ...], tuple[Problem, ...]]:
    """Ask for what each of *classes* selects, what EC2 would refuse, and what could be started.

    Raises:
        Fault: types, zones or prices could not be asked for.
        ValueError: a setting is no number.
    """
    world = _world(clients, settings, lambda: now)
    seen = look(world, classes)
    sold = _sold(world)
    settled = knobs(settings.vm_memory_overhead_percent, settings.reserved_enis)
    problems = list(seen.problems)
    found = dict(seen.found)
    resolved = []
    for one in classes:
        made = _resolved(one, found[one.name], seen.facts, sold, settled, world)
        resolved.append(_rehearsed(made, world, problems) if rehearses else made)
    return tuple(resolved), tuple(problems)


Sold = tuple[tuple[InstanceTypeInfo, ...], Market]


def _resolved(
    one: EC2NodeClass, found: Found, facts: ClusterFacts | None, sold: Sold, settled: Knobs, world: World
) -> Resolved:
    own = filled(one, found, world.settings.instance_profile, world.clock())
    infos, market = sold
    types = instance_types(infos, market, own, settled, now=world.clock()) if own.resolved_images else ()
    fitting = tuple(kind for kind in types if _has_image(own, kind))
    names = {kind.name for kind in fitting}
    crowded = tuple(info.name for info in infos if info.name in names and _is_crowded(own, info, settled))
    return Resolved(node_class=own, found=found, facts=facts, types=fitting, crowded=crowded)


def _is_crowded(own: EC2NodeClass, info: InstanceTypeInfo, settled: Knobs) -> bool:
    wanted = own.kubelet.max_pods
    return wanted is not None and not own.ip_prefix_count and wanted > eni_limited_pods(info, settled.reserved_enis)


def _rehearsed(made: Resolved, world: World, problems: list[Problem]) -> Resolved:
    own, found = made.node_class, made.found
    if made.facts is None or found.findings or not own.resolved_profile or not own.resolved_security_groups:
        return made
    asked = probe(own, made.facts, made.types)
    if asked is None:
        return made
    try:
        refusals = world.ec2.refusals(asked)
    except Fault as fault:
        problems.append(Problem(kind="EC2NodeClass", name=own.name, message=f"{type(fault).__name__}: {fault}"))
        return replace(made, found=replace(found, refusals=None))
    return replace(made, refusals=refusals, found=replace(found, findings=refusal_findings(own, refusals)))


def _has_image(own: EC2NodeClass, kind: InstanceType) -> bool:
    return any(not kind.requirements.conflict(image.requirements) for image in own.resolved_images)


def _sold(world: World) -> Sold:
    market = Market(
        region=world.settings.region,
        offerings=world.ec2.offerings(),
        on_demand=world.prices.on_demand(world.settings.region),
        spot=world.ec2.spot_prices(),
    )
    return world.ec2.instance_types(), market


def _world(clients: Clients, settings: Settings, clock: Callable[[], datetime]) -> World:
    nothing: Any = None
    return World(
        settings=settings,
        kube=nothing,
        ec2=BotoEc2(clients, clock),
        parameters=BotoParameters(clients),
        prices=BotoPrices(clients),
        eks=BotoEks(clients),
        mailbox=nothing,
        table=cast("Any", _Unwritten()),
        bucket=nothing,
        clock=clock,
        emit=nothing,
    )
