"""Whether a node class can launch an instance type; an incompatible type is listed but unavailable."""

from shared.model.ec2.instance_type_info import InstanceTypeInfo
from shared.model.karpenter.node_class import EC2NodeClass


def explain_incompatibility(info: InstanceTypeInfo, node_class: EC2NodeClass) -> str:
    """Return why *node_class* cannot launch the type, "" if it can."""
    group = node_class.resolved_placement_group
    if node_class.ami_family == "AL2023" and info.name.startswith("a1."):
        return "amiFamily: AL2023 does not run on the first Graviton"
    if node_class.network_interfaces and not _has_interfaces(info, node_class):
        return "spec.networkInterfaces: the instance type does not have these interfaces"
    if node_class.nested_virtualization == "enabled" and "nested-virtualization" not in info.processor_features:
        return "spec.cpuOptions.nestedVirtualization: the processor does not support it"
    if group is not None and group.strategy not in info.placement_strategies:
        return f"spec.placementGroupSelector: not allowed in a {group.strategy} placement group"
    if node_class.connection_tracking is not None and info.hypervisor != "nitro":
        return "spec.connectionTracking: only for virtualized Nitro instances"
    return ""


def count_efa_only_interfaces(node_class: EC2NodeClass, card: int | None = None) -> int:
    """Return how many interfaces (of *card*, if given) are `efa-only`, without addresses."""
    return sum(
        interface.interface_type == "efa-only" and card in (None, interface.network_card_index)
        for interface in node_class.network_interfaces
    )


def _has_interfaces(info: InstanceTypeInfo, node_class: EC2NodeClass) -> bool:
    max_interfaces_by_card = {card.index: card.maximum_interfaces for card in info.network_cards}
    return (
        bool(max_interfaces_by_card)
        and info.ena_support != "unsupported"
        and all(
            interface.device_index < max_interfaces_by_card.get(interface.network_card_index, 0)
            for interface in node_class.network_interfaces
        )
        and count_efa_only_interfaces(node_class) <= info.efa_interfaces
    )
