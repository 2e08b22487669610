"""What is wrong with an EC2NodeClass before anybody is asked: each finding names the field and what to do about it.

The API server refuses most of it already; objects also come from files, and from before a rule was made.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from shared.launch.amounts import uncomputable, unreadable
from shared.launch.bootstrap import Bootstrap
from shared.launch.families import ALIASES, FAMILIES
from shared.launch.kubelet import expressions, family_problems, structure_problems
from shared.launch.spec_values import value_problems
from shared.launch.userdata import LIMIT_BYTES, user_data
from shared.launch.userdata_bottlerocket import dropped
from shared.launch.userdata_mime import is_script
from shared.model import labels
from shared.model.ec2 import ClusterFacts, InstanceTypeInfo, Selector
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import pairs

RESTRICTED: Final = ("eks:eks-cluster-name", labels.NODEPOOL, "karpenter.sh/nodeclaim", labels.NODECLASS)
"""Tags that tell who owns an instance: nobody else may write them."""
_OWNER_PREFIX: Final = "kubernetes.io/cluster"
_LONGEST_KEY: Final = 128
_LONGEST_VALUE: Final = 256
_IDS: Final = {
    "subnetSelectorTerms": re.compile(r"subnet-[0-9a-z]+"),
    "securityGroupSelectorTerms": re.compile(r"sg-[0-9a-z]+"),
    "capacityReservationSelectorTerms": re.compile(r"cr-[0-9a-z]+"),
    "amiSelectorTerms": re.compile(r"ami-[0-9a-z]+"),
}
_AMI_ID: Final = re.compile(r"ami-[0-9a-z*]+")
_HOPS: Final = (1, 64)
_USUAL_PODS: Final = 110
_EXTREMES: Final = tuple(
    InstanceTypeInfo(
        name=name,
        architectures=("x86_64",),
        usage_classes=(),
        vcpus=vcpus,
        memory_mib=mib,
        maximum_interfaces=enis,
        ipv4_per_interface=ips,
    )
    for name, vcpus, mib, enis, ips in (
        ("t3.nano", 2, 512, 2, 2),
        ("a1.medium", 1, 2048, 2, 4),
        ("m5.large", 2, 8192, 3, 10),
        ("m5.24xlarge", 96, 393_216, 15, 50),
        ("u7in-32tb.224xlarge", 896, 33_554_432, 15, 50),
    )
)
"""Machines of every size: what can be computed for these can be for all."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that keeps a node class from being used."""

    reason: str
    """Of the condition ValidationSucceeded."""
    message: str


def findings(
    node_class: EC2NodeClass, facts: ClusterFacts | None, *, with_expressions: bool = False
) -> tuple[Finding, ...]:
    """Answer what is wrong with the spec, gravest first; without *facts* user data cannot be tried.

    Expressions in spec.kubelet are refused unless the deployment wants them.
    """
    some: tuple[tuple[str, Iterable[str]], ...] = (
        ("ValidationFailed", _spec(node_class)),
        ("ValidationFailed", value_problems(node_class)),
        ("InvalidKubeletConfiguration", structure_problems(node_class)),
        *_expressions(node_class, with_expressions=with_expressions),
        ("UnsupportedKubeletConfiguration", family_problems(node_class)),
        ("TagValidationFailed", _tags(node_class)),
    )
    found = [Finding(reason=reason, message=message) for reason, messages in some for message in messages]
    return tuple(found if found or facts is None else _user_data(node_class, facts))


def advice(node_class: EC2NodeClass) -> Iterator[str]:
    """Iterate over what is allowed, and hardly meant."""
    for number, term in enumerate(node_class.image_selectors):
        if _AMI_ID.fullmatch(term.name):
            yield f"spec.amiSelectorTerms[{number}].name: {term.name} looks like an id: write it as `id`"
    own = node_class.user_data.strip()
    if node_class.ami_family == "Bottlerocket":
        try:
            lost = dropped(own)
        except ValueError:
            lost = ()
        if lost:
            yield f"spec.userData: settings.kubernetes.{', '.join(lost)}: Joiner does not pass it on: remove it"
    elif node_class.ami_family in ("AL2", "AL2023") and own and not _is_understood(own):
        yield (
            "spec.userData: is neither a script, which begins with #!, nor a MIME archive or NodeConfig: cloud-init "
            "will not run it"
        )
    if len({subnet.zone for subnet in node_class.resolved_subnets}) == 1:
        yield f"spec.subnetSelectorTerms: all subnets are in {node_class.resolved_subnets[0].zone}: choose two zones"


def rehearsal(facts: ClusterFacts) -> Bootstrap:
    """Answer what a machine could be told, to see how it reads and how long it is."""
    own = {labels.NODEPOOL: "default", labels.CAPACITY_TYPE: labels.ON_DEMAND}
    return Bootstrap(facts=facts, labels=pairs(own), taints=(), max_pods=110)


def _expressions(node_class: EC2NodeClass, *, with_expressions: bool) -> Iterator[tuple[str, Iterable[str]]]:
    some = expressions(node_class)
    if not with_expressions:
        how = "write an amount, or deploy with joiner:aws-feature-gates=NodeClassCEL=true"
        yield (
            "KubeletExpressionsDisabled",
            tuple(f"spec.kubelet.{path}: {text!r} is an expression: {how}" for path, text in some),
        )
        return
    wrong = tuple(unreadable(node_class))
    yield "KubeletExpressionInvalid", wrong
    if not wrong:
        yield "KubeletExpressionEvaluationFailed", tuple(uncomputable(node_class, _EXTREMES, _USUAL_PODS))


def _is_understood(own: str) -> bool:
    return is_script(own) or own.startswith(("MIME-Version:", "Content-Type:")) or "NodeConfig" in own


def _user_data(node_class: EC2NodeClass, facts: ClusterFacts) -> Iterator[Finding]:
    if node_class.ami_family == "AL2023" and not facts.service_cidr:
        yield Finding(
            reason="ClusterCIDRResolutionFailed",
            message=f"cluster {facts.name}: eks:DescribeCluster names no service CIDR; AL2023 cannot join without",
        )
        return
    try:
        text = user_data(node_class, rehearsal(facts))
    except ValueError as error:
        yield Finding(reason="UserDataInvalid", message=str(error))
        return
    size = len(text.encode())
    if size > LIMIT_BYTES:
        message = (
            f"spec.userData: with ours it is {size:,} bytes, and EC2 takes {LIMIT_BYTES:,}: shorten it, or let it "
            "fetch the rest"
        )
        yield Finding(reason="UserDataSizeLimitExceeded", message=message)


def _spec(node_class: EC2NodeClass) -> Iterator[str]:
    for name, terms in (
        ("subnetSelectorTerms", node_class.subnet_selectors),
        ("securityGroupSelectorTerms", node_class.security_group_selectors),
        ("amiSelectorTerms", node_class.image_selectors),
    ):
        if not terms:
            yield f"spec.{name}: is empty: name at least one by id or tags"
        for number, term in enumerate(terms):
            yield from _term(f"spec.{name}[{number}]", term, _IDS[name])
    for number, term in enumerate(node_class.capacity_reservation_selectors):
        path = f"spec.capacityReservationSelectorTerms[{number}]"
        yield from _term(path, term, _IDS["capacityReservationSelectorTerms"])
    yield from _images(node_class)
    yield from _profile(node_class)
    yield from _devices(node_class)
    yield from _network(node_class)
    group = node_class.placement_group_selector
    if group is not None and bool(group.id) == bool(group.name):
        yield "spec.placementGroupSelector: write exactly one of id and name"
    if not _HOPS[0] <= node_class.http_put_response_hop_limit <= _HOPS[1]:
        yield (
            f"spec.metadataOptions.httpPutResponseHopLimit: {node_class.http_put_response_hop_limit}: write 1 to 64; "
            "pods on the pod network need 2"
        )


def _term(path: str, term: Selector, pattern: re.Pattern[str]) -> Iterator[str]:
    alone = [one for one in (term.id, term.alias, term.ssm_parameter) if one]
    others = [one for one in (term.name, term.tags, term.owner, term.instance_match_criteria) if one]
    is_group = pattern is _IDS["securityGroupSelectorTerms"]
    if not alone and not [one for one in others if one != term.owner]:
        yield f"{path}: selects nothing: write an id, or tags"
    if len(alone) > 1 or (alone and others) or (is_group and term.name and term.tags):
        yield f"{path}: an id, alias, ssmParameter or group name stands alone in its term: make two terms of it"
    if term.id and not pattern.fullmatch(term.id):
        yield f"{path}.id: {term.id!r} is no id: write one like {pattern.pattern.partition('[')[0]}0123456789abcdef0"
    if any(not key or not value for key, value in term.tags):
        yield f"{path}.tags: a key or value is empty: write `*` for any value"


def _images(node_class: EC2NodeClass) -> Iterator[str]:
    aliases = [(number, term.alias) for number, term in enumerate(node_class.image_selectors) if term.alias]
    if not aliases:
        if not node_class.written_family and node_class.image_selectors:
            yield "spec.amiFamily: is missing, and no alias tells it: write AL2023, Bottlerocket, … or Custom"
        if node_class.written_family and node_class.written_family not in FAMILIES:
            yield _no_family("spec.amiFamily", node_class.written_family)
        return
    if len(node_class.image_selectors) > 1:
        yield "spec.amiSelectorTerms: an alias is the only term: remove the others"
    number, alias = aliases[0]
    path = f"spec.amiSelectorTerms[{number}].alias"
    word, _, version = alias.partition("@")
    family = ALIASES.get(word.lower())
    if family is None:
        yield _no_family(path, alias)
    elif not version:
        yield f"{path}: {alias!r} has no version: write {word}@latest, or a release as {word}@v20261101"
    elif family.startswith("Windows") and version != "latest":
        yield f"{path}: {alias!r}: Windows images have no version but latest: write {word}@latest"
    elif node_class.written_family not in ("", family, "Custom"):
        yield f"spec.amiFamily: {node_class.written_family} contradicts the alias {alias}: remove it, or write {family}"


def _no_family(path: str, word: str) -> str:
    if word.lower().startswith("ubuntu"):
        return f"{path}: {word!r}: Ubuntu is no family any more: write Custom, with user data that joins the cluster"
    return (
        f"{path}: {word!r} is no family of images: write one of {', '.join(f'{one}@latest' for one in sorted(ALIASES))}"
    )


def _profile(node_class: EC2NodeClass) -> Iterator[str]:
    if node_class.role and node_class.instance_profile:
        yield "spec.role: stands beside spec.instanceProfile: remove one of them"
    if not node_class.role and not node_class.instance_profile:
        yield "spec.role: is missing, and so is spec.instanceProfile: write one of them"


def _devices(node_class: EC2NodeClass) -> Iterator[str]:
    for number, device in enumerate(node_class.block_devices):
        path = f"spec.blockDeviceMappings[{number}].ebs"
        if device.volume_size_gib is None and not device.snapshot_id:
            yield f"{path}: has neither volumeSize nor snapshotID: write one of them"
        if device.volume_initialization_rate is not None and not device.snapshot_id:
            yield f"{path}.volumeInitializationRate: needs a snapshotID: add it, or remove the rate"
    if len(node_class.root_devices) > 1:
        yield f"spec.blockDeviceMappings: {' and '.join(node_class.root_devices)} are rootVolume: mark one of them"
    names = [device.device_name for device in node_class.block_devices]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"spec.blockDeviceMappings: {name} is mapped twice: remove one"


def _network(node_class: EC2NodeClass) -> Iterator[str]:
    some = node_class.network_interfaces
    places = [(one.network_card_index, one.device_index) for one in some]
    if some and not any(
        place == (0, 0) and one.interface_type == "interface" for place, one in zip(places, some, strict=True)
    ):
        yield "spec.networkInterfaces: the first, card 0 and device 0, is not of type interface: add it"
    for place in sorted({place for place in places if places.count(place) > 1}):
        yield f"spec.networkInterfaces: device {place[1]} of card {place[0]} is named twice: remove one"
    cards = [one.network_card_index for one in some if one.interface_type == "efa-only"]
    for card in sorted({card for card in cards if cards.count(card) > 1}):
        yield f"spec.networkInterfaces: card {card} has two efa-only interfaces: keep one"
    tracking = node_class.connection_tracking
    if tracking is None:
        return
    for name, value, low, high in (
        ("tcpEstablishedTimeout", tracking.tcp_established_timeout, 60, 432_000),
        ("udpStreamTimeout", tracking.udp_stream_timeout, 60, 180),
        ("udpTimeout", tracking.udp_timeout, 30, 60),
    ):
        if value is not None and not low <= value <= high:
            yield f"spec.connectionTracking.{name}: {value}: write {low} to {high} seconds"


def _tags(node_class: EC2NodeClass) -> Iterator[str]:
    for key, value in node_class.tags:
        if key in RESTRICTED or key.startswith(_OWNER_PREFIX):
            yield f"spec.tags[{key}]: is ours to write, since it tells whose an instance is: remove it"
        elif key.lower().startswith("aws:"):
            yield f"spec.tags[{key}]: keys that begin with aws: are Amazon's own: choose another"
        elif not key or len(key) > _LONGEST_KEY or len(value) > _LONGEST_VALUE:
            yield f"spec.tags[{key[:20]}]: EC2 takes keys of 1 to 128 characters and values of up to 256: shorten it"
