"""What an account has for EC2NodeClasses: what they select, what EC2 would refuse, what could be started."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from cli.account import Sold, sold
from cli.files import Tell
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
from shared.launch.types import instance_types
from shared.model.catalogue import InstanceType
from shared.model.ec2 import ClusterFacts, InstanceTypeInfo, Refusal
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import Problem
from shared.ports import Row, World
from shared.settings import Settings, aws_gates_from
from shared.snapshot.account import look
from shared.snapshot.shop import PriceList


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


def resolve_all(
    classes: tuple[EC2NodeClass, ...],
    clients: Clients,
    settings: Settings,
    now: datetime,
    tell: Tell,
    *,
    listed: PriceList | None = None,
    rehearses: bool = True,
) -> tuple[Resolved, ...]:
    """Ask for what each of *classes* selects, what EC2 would refuse, and what could be started.

    What could not be asked for is told; *listed* is used where the pricing service cannot be asked.

    Raises:
        Fault: types, zones or spot prices could not be asked for.
        ValueError: a setting is no number.
    """
    world = asking(clients, settings, lambda: now)
    seen = look(world, classes)
    goods = sold(clients, now, tell, listed)
    cel = aws_gates_from(settings.aws_feature_gates).node_class_cel
    settled = knobs(settings.vm_memory_overhead_percent, settings.reserved_enis, node_class_cel=cel)
    problems = list(seen.problems)
    found = dict(seen.found)
    resolved = []
    for one in classes:
        made = _resolved(one, found[one.name], seen.facts, goods, settled, world)
        resolved.append(_rehearsed(made, world, problems) if rehearses else made)
    for problem in problems:
        tell(f"{problem.kind} {problem.name}: {problem.message}")
    return tuple(resolved)


def _resolved(
    one: EC2NodeClass, found: Found, facts: ClusterFacts | None, goods: Sold, settled: Knobs, world: World
) -> Resolved:
    own = filled(one, found, world.settings.instance_profile, world.clock())
    infos, market = goods
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


def asking(clients: Clients, settings: Settings, clock: Callable[[], datetime]) -> World:
    """Answer a world of the account alone: it is asked, and nothing is written down."""
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
