"""Validation of an EC2NodeClass without AWS calls: each finding names the field and the fix.

The API server rejects most of these errors already; objects also come from files, and from before a rule existed.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from shared.decide.launch.ami_families.ami_family import AMI_FAMILIES
from shared.decide.launch.ami_families.bootstrap import Bootstrap
from shared.decide.launch.ami_families.bottlerocket import list_dropped_keys
from shared.decide.launch.ami_families.mime import is_script
from shared.decide.launch.ami_families.user_data import MAX_USER_DATA_BYTES, build_user_data
from shared.decide.launch.kubelet.configuration import list_expressions, validate_kubelet, validate_kubelet_for_family
from shared.decide.launch.kubelet.resource_expressions import find_failing_expressions, find_invalid_expressions
from shared.decide.node_class.api_rules import validate_spec_values
from shared.model.cloud_provider.node_class_findings import NodeClassFinding
from shared.model.core import labels
from shared.model.core.metadata import build_pairs
from shared.model.ec2.account import ControlPlaneFacts, SelectorTerm
from shared.model.ec2.instance import CLUSTER_TAG, NODE_CLAIM_TAG
from shared.model.ec2.instance_type_info import InstanceTypeInfo
from shared.model.karpenter.node_class import FAMILY_BY_ALIAS, EC2NodeClass

RESTRICTED_TAGS: Final = (CLUSTER_TAG, labels.NODEPOOL, NODE_CLAIM_TAG, labels.NODECLASS)
"""Tags that identify the owner of an instance: users may not set them."""
_CLUSTER_TAG_PREFIX: Final = "kubernetes.io/cluster"
_MAX_TAG_KEY_LENGTH: Final = 128
_MAX_TAG_VALUE_LENGTH: Final = 256
_ID_PATTERNS: Final = {
    "subnetSelectorTerms": re.compile(r"subnet-[0-9a-z]+"),
    "securityGroupSelectorTerms": re.compile(r"sg-[0-9a-z]+"),
    "capacityReservationSelectorTerms": re.compile(r"cr-[0-9a-z]+"),
    "amiSelectorTerms": re.compile(r"ami-[0-9a-z]+"),
}
_AMI_ID_PATTERN: Final = re.compile(r"ami-[0-9a-z*]+")
_HOP_LIMIT_RANGE: Final = (1, 64)
_DEFAULT_MAX_PODS: Final = 110
_SAMPLE_TYPES: Final = tuple(
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
"""Instance types of very different sizes: an expression that is valid for these is taken as valid for all."""


def validate_node_class(
    node_class: EC2NodeClass, facts: ControlPlaneFacts | None, *, are_expressions_enabled: bool = False
) -> tuple[NodeClassFinding, ...]:
    """Return the findings about the spec, most severe first; without *facts*, user data is not checked.

    Expressions in spec.kubelet are findings unless the deployment enables them.
    """
    messages_by_check: tuple[tuple[str, Iterable[str]], ...] = (
        ("ValidationFailed", _validate_spec(node_class)),
        ("ValidationFailed", validate_spec_values(node_class)),
        ("InvalidKubeletConfiguration", validate_kubelet(node_class)),
        *_validate_expressions(node_class, are_expressions_enabled=are_expressions_enabled),
        ("UnsupportedKubeletConfiguration", validate_kubelet_for_family(node_class)),
        ("TagValidationFailed", _validate_tags(node_class)),
    )
    results = [
        NodeClassFinding(reason=reason, message=message)
        for reason, messages in messages_by_check
        for message in messages
    ]
    return tuple(results if results or facts is None else _validate_user_data(node_class, facts))


def lint_node_class(node_class: EC2NodeClass) -> Iterator[str]:
    """Yield likely mistakes: settings that are allowed, but probably not intended."""
    for number, term in enumerate(node_class.image_selectors):
        if _AMI_ID_PATTERN.fullmatch(term.name):
            yield f"spec.amiSelectorTerms[{number}].name: {term.name} is an id: use the field `id`"
    user_data_text = node_class.user_data.strip()
    if node_class.ami_family == "Bottlerocket":
        try:
            dropped_keys = list_dropped_keys(user_data_text)
        except ValueError:
            dropped_keys = ()
        if dropped_keys:
            yield f"spec.userData: settings.kubernetes.{', '.join(dropped_keys)}: Joiner does not support it: remove it"
    elif node_class.ami_family in ("AL2", "AL2023") and user_data_text and not _is_understood(user_data_text):
        yield (
            "spec.userData: cloud-init ignores it: it is neither a script (first line #!), a MIME archive nor a "
            "NodeConfig: correct it, or remove it"
        )
    if len({subnet.zone for subnet in node_class.resolved_subnets}) == 1:
        yield f"spec.subnetSelectorTerms: all subnets are in {node_class.resolved_subnets[0].zone}: choose two zones"


def build_sample_bootstrap(facts: ControlPlaneFacts) -> Bootstrap:
    """Build a sample bootstrap input, to check that user data can be built, and how long it is."""
    sample_labels = {labels.NODEPOOL: "default", labels.CAPACITY_TYPE: labels.ON_DEMAND}
    return Bootstrap(facts=facts, labels=build_pairs(sample_labels), taints=(), max_pods=110)


def _validate_expressions(
    node_class: EC2NodeClass, *, are_expressions_enabled: bool
) -> Iterator[tuple[str, Iterable[str]]]:
    expression_pairs = list_expressions(node_class)
    if not are_expressions_enabled:
        fix = "write an amount, or deploy with the setting aws-feature-gates: NodeClassCEL=true"
        yield (
            "KubeletExpressionsDisabled",
            tuple(f"spec.kubelet.{path}: {text!r} is an expression: {fix}" for path, text in expression_pairs),
        )
        return
    parse_errors = tuple(find_invalid_expressions(node_class))
    yield "KubeletExpressionInvalid", parse_errors
    if not parse_errors:
        yield (
            "KubeletExpressionEvaluationFailed",
            tuple(find_failing_expressions(node_class, _SAMPLE_TYPES, _DEFAULT_MAX_PODS)),
        )


def _is_understood(user_data_text: str) -> bool:
    return (
        is_script(user_data_text)
        or user_data_text.startswith(("MIME-Version:", "Content-Type:"))
        or "NodeConfig" in user_data_text
    )


def _validate_user_data(node_class: EC2NodeClass, facts: ControlPlaneFacts) -> Iterator[NodeClassFinding]:
    if node_class.ami_family == "AL2023" and not facts.service_cidr:
        yield NodeClassFinding(
            reason="ClusterCIDRResolutionFailed",
            message=(
                f"cluster {facts.name}: eks:DescribeCluster names no service CIDR, which AL2023 needs to "
                "join the cluster"
            ),
        )
        return
    try:
        text = build_user_data(node_class, build_sample_bootstrap(facts))
    except ValueError as error:
        yield NodeClassFinding(reason="UserDataInvalid", message=str(error))
        return
    size = len(text.encode())
    if size > MAX_USER_DATA_BYTES:
        message = (
            f"spec.userData: has {size:,} bytes with the bootstrap data of Joiner, but EC2 accepts "
            f"{MAX_USER_DATA_BYTES:,}: shorten it, or download the rest at boot"
        )
        yield NodeClassFinding(reason="UserDataSizeLimitExceeded", message=message)


def _validate_spec(node_class: EC2NodeClass) -> Iterator[str]:
    for name, terms in (
        ("subnetSelectorTerms", node_class.subnet_selectors),
        ("securityGroupSelectorTerms", node_class.security_group_selectors),
        ("amiSelectorTerms", node_class.image_selectors),
    ):
        if not terms:
            yield f"spec.{name}: is empty: name at least one by id or tags"
        for number, term in enumerate(terms):
            yield from _validate_selector_term(f"spec.{name}[{number}]", term, _ID_PATTERNS[name])
    for number, term in enumerate(node_class.capacity_reservation_selectors):
        path = f"spec.capacityReservationSelectorTerms[{number}]"
        yield from _validate_selector_term(path, term, _ID_PATTERNS["capacityReservationSelectorTerms"])
    yield from _validate_images(node_class)
    yield from _validate_profile(node_class)
    yield from _validate_block_devices(node_class)
    yield from _validate_network(node_class)
    group = node_class.placement_group_selector
    if group is not None and bool(group.id) == bool(group.name):
        yield "spec.placementGroupSelector: write either id or name"
    if not _HOP_LIMIT_RANGE[0] <= node_class.http_put_response_hop_limit <= _HOP_LIMIT_RANGE[1]:
        yield (
            f"spec.metadataOptions.httpPutResponseHopLimit: {node_class.http_put_response_hop_limit}: write 1 to 64; "
            "pods on the pod network need 2"
        )


def _validate_selector_term(path: str, term: SelectorTerm, pattern: re.Pattern[str]) -> Iterator[str]:
    exclusive_fields = [field for field in (term.id, term.alias, term.ssm_parameter) if field]
    combinable_fields = [field for field in (term.name, term.tags, term.owner, term.instance_match_criteria) if field]
    is_group = pattern is _ID_PATTERNS["securityGroupSelectorTerms"]
    if not exclusive_fields and not [field for field in combinable_fields if field != term.owner]:
        yield f"{path}: is empty: write an id, or tags"
    if len(exclusive_fields) > 1 or (exclusive_fields and combinable_fields) or (is_group and term.name and term.tags):
        yield f"{path}: an id, alias, ssmParameter or group name cannot be combined with other fields: write two terms"
    if term.id and not pattern.fullmatch(term.id):
        yield (
            f"{path}.id: {term.id!r} is not an id: write an id like "
            f"{pattern.pattern.partition('[')[0]}0123456789abcdef0"
        )
    if any(not key or not value for key, value in term.tags):
        yield f"{path}.tags: a key or value is empty: write `*` for any value"


def _validate_images(node_class: EC2NodeClass) -> Iterator[str]:
    aliases = [(number, term.alias) for number, term in enumerate(node_class.image_selectors) if term.alias]
    if not aliases:
        if not node_class.spec_ami_family and node_class.image_selectors:
            yield "spec.amiFamily: is missing, and no alias defines it: write AL2023, Bottlerocket, … or Custom"
        if node_class.spec_ami_family and node_class.spec_ami_family not in AMI_FAMILIES:
            yield _explain_unknown_family("spec.amiFamily", node_class.spec_ami_family)
        return
    if len(node_class.image_selectors) > 1:
        yield "spec.amiSelectorTerms: an alias must be the only term: remove the others"
    number, alias = aliases[0]
    path = f"spec.amiSelectorTerms[{number}].alias"
    word, _, version = alias.partition("@")
    family = FAMILY_BY_ALIAS.get(word.lower())
    if family is None:
        yield _explain_unknown_family(path, alias)
    elif not version:
        yield f"{path}: {alias!r} has no version: write {word}@latest, or a release as {word}@v20261101"
    elif family.startswith("Windows") and version != "latest":
        yield f"{path}: {alias!r}: Windows aliases support only the version latest: write {word}@latest"
    elif node_class.spec_ami_family not in ("", family, "Custom"):
        spec_family = node_class.spec_ami_family
        yield f"spec.amiFamily: {spec_family} contradicts the alias {alias}: remove it, or write {family}"


def _explain_unknown_family(path: str, word: str) -> str:
    if word.lower().startswith("ubuntu"):
        return f"{path}: {word!r}: Ubuntu is not supported: write Custom, with user data that joins the cluster"
    latest_aliases = ", ".join(f"{alias}@latest" for alias in sorted(FAMILY_BY_ALIAS))
    return f"{path}: {word!r} is not an AMI family: write one of {latest_aliases}"


def _validate_profile(node_class: EC2NodeClass) -> Iterator[str]:
    if node_class.role and node_class.instance_profile:
        yield "spec.role: cannot be combined with spec.instanceProfile: remove one of them"
    if not node_class.role and not node_class.instance_profile:
        yield "spec.role: spec.role and spec.instanceProfile are missing: write one of them"


def _validate_block_devices(node_class: EC2NodeClass) -> Iterator[str]:
    for number, device in enumerate(node_class.block_devices):
        path = f"spec.blockDeviceMappings[{number}].ebs"
        if device.volume_size_gib is None and not device.snapshot_id:
            yield f"{path}: has neither volumeSize nor snapshotID: write one of them"
        if device.volume_initialization_rate is not None and not device.snapshot_id:
            yield f"{path}.volumeInitializationRate: needs a snapshotID: add it, or remove the rate"
    if len(node_class.root_devices) > 1:
        yield (
            f"spec.blockDeviceMappings: {' and '.join(node_class.root_devices)} are rootVolume: keep "
            "rootVolume on one of them"
        )
    names = [device.device_name for device in node_class.block_devices]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"spec.blockDeviceMappings: {name} is mapped twice: remove one"


def _validate_network(node_class: EC2NodeClass) -> Iterator[str]:
    interfaces = node_class.network_interfaces
    places = [(interface.network_card_index, interface.device_index) for interface in interfaces]
    if interfaces and not any(
        place == (0, 0) and interface.interface_type == "interface"
        for place, interface in zip(places, interfaces, strict=True)
    ):
        yield "spec.networkInterfaces: the first, card 0 and device 0, is not of type interface: add it"
    for place in sorted({place for place in places if places.count(place) > 1}):
        yield f"spec.networkInterfaces: device {place[1]} of card {place[0]} is named twice: remove one"
    cards = [interface.network_card_index for interface in interfaces if interface.interface_type == "efa-only"]
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


def _validate_tags(node_class: EC2NodeClass) -> Iterator[str]:
    for key, value in node_class.tags:
        if key in RESTRICTED_TAGS or key.startswith(_CLUSTER_TAG_PREFIX):
            yield f"spec.tags[{key}]: is set by Joiner, which identifies its instances by it: remove it"
        elif key.lower().startswith("aws:"):
            yield f"spec.tags[{key}]: keys that begin with aws: are reserved by AWS: choose another key"
        elif not key or len(key) > _MAX_TAG_KEY_LENGTH or len(value) > _MAX_TAG_VALUE_LENGTH:
            yield f"spec.tags[{key[:20]}]: EC2 accepts keys of 1 to 128 characters and values of up to 256: shorten it"
