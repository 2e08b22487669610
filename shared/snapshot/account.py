"""One look at the account: what node classes select there, and what is on sale."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from shared.errors import Fault, Gone
from shared.launch.nodeclass import Found, parameters_wanted
from shared.launch.types import Market
from shared.model.ec2 import ClusterFacts, Image, InstanceTypeInfo, Selector
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import Problem
from shared.ports import World

Answer = TypeVar("Answer")


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What the account answered; None: it could not be asked, and nothing is concluded."""

    facts: ClusterFacts | None
    found: tuple[tuple[str, Found], ...]
    """By node class."""
    problems: tuple[Problem, ...] = ()


class Shop(msgspec.Struct, frozen=True, kw_only=True):
    """What is on sale in the region."""

    infos: tuple[InstanceTypeInfo, ...]
    market: Market


def look(world: World, node_classes: Iterable[EC2NodeClass]) -> Account:
    """Ask for what every node class selects; a part that fails is None, and named."""
    problems: list[Problem] = []
    facts = _asked("Cluster", world.settings.cluster_name, lambda: world.eks.cluster(_name(world)), problems)
    found = tuple((one.name, _found(one, facts, world, problems)) for one in node_classes)
    return Account(facts=facts, found=found, problems=tuple(problems))


def shop(world: World) -> Shop:
    """Ask what is on sale.

    Raises:
        Fault: a part of it was not answered: a catalogue without prices or types is none.
    """
    market = Market(
        region=world.settings.region,
        offerings=world.ec2.offerings(),
        on_demand=world.prices.on_demand(world.settings.region),
        spot=world.ec2.spot_prices(),
    )
    return Shop(infos=world.ec2.instance_types(), market=market)


def _name(world: World) -> str:
    return world.settings.cluster_name


def _found(node_class: EC2NodeClass, facts: ClusterFacts | None, world: World, problems: list[Problem]) -> Found:
    def asked(question: Callable[[], Answer]) -> Answer | None:
        return _asked("EC2NodeClass", node_class.name, question, problems)

    return Found(
        subnets=asked(lambda: world.ec2.subnets(node_class.subnet_selectors)),
        security_groups=asked(lambda: world.ec2.security_groups(node_class.security_group_selectors)),
        images=asked(lambda: _images(node_class, facts, world)) if facts is not None else None,
    )


def _images(node_class: EC2NodeClass, facts: ClusterFacts, world: World) -> tuple[tuple[Image, tuple[str, ...]], ...]:
    variants: dict[str, list[str]] = {}
    for wanted in parameters_wanted(node_class, facts.version):
        try:
            image_id = world.parameters.parameter(wanted.name)
        except Gone:
            continue  # not every variant exists for every version
        variants.setdefault(image_id, []).extend(wanted.variants)
    own = tuple(term for term in node_class.image_selectors if not term.alias and not term.ssm_parameter)
    by_id = tuple(Selector(id=image_id) for image_id in sorted(variants))
    images = world.ec2.images((*own, *by_id)) if own or by_id else ()
    return tuple((image, tuple(variants.get(image.image_id, ()))) for image in images)


def _asked(kind: str, name: str, question: Callable[[], Answer], problems: list[Problem]) -> Answer | None:
    try:
        return question()
    except Fault as fault:
        problems.append(Problem(kind=kind, name=name, message=f"{type(fault).__name__}: {fault}"))
        return None
