"""Whether an instance type can be started as a node class wants it; one that cannot is shown, and never offered."""

from shared.model.ec2 import InstanceTypeInfo
from shared.model.nodeclasses import EC2NodeClass


def obstacle(info: InstanceTypeInfo, node_class: EC2NodeClass) -> str:
    """Answer what stands against it, "" if nothing does."""
    group = node_class.resolved_placement_group
    if node_class.ami_family == "AL2023" and info.name.startswith("a1."):
        return "amiFamily: AL2023 does not run on the first Graviton"
    if node_class.network_interfaces and not _has_interfaces(info, node_class):
        return "spec.networkInterfaces: it has no such interfaces"
    if node_class.nested_virtualization == "enabled" and "nested-virtualization" not in info.processor_features:
        return "spec.cpuOptions.nestedVirtualization: its processor has none"
    if group is not None and group.strategy not in info.placement_strategies:
        return f"spec.placementGroupSelector: it cannot be in a {group.strategy} group"
    if node_class.connection_tracking is not None and info.hypervisor != "nitro":
        return "spec.connectionTracking: only for virtual machines on Nitro"
    return ""


def efa_only(node_class: EC2NodeClass, card: int | None = None) -> int:
    """Answer how many interfaces, of *card* if given, are for EFA alone and carry no addresses."""
    return sum(
        one.interface_type == "efa-only" and card in (None, one.network_card_index)
        for one in node_class.network_interfaces
    )


def _has_interfaces(info: InstanceTypeInfo, node_class: EC2NodeClass) -> bool:
    most = {card.index: card.maximum_interfaces for card in info.network_cards}
    return (
        bool(most)
        and info.ena_support != "unsupported"
        and all(one.device_index < most.get(one.network_card_index, 0) for one in node_class.network_interfaces)
        and efa_only(node_class) <= info.efa_interfaces
    )
