"""Feature gates, and how they are parsed from settings."""

import msgspec


class FeatureGates(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """Enabled features; names and defaults are Karpenter's."""

    node_repair: bool = False
    reserved_capacity: bool = True
    spot_to_spot_consolidation: bool = False
    node_overlay: bool = False
    static_capacity: bool = False
    capacity_buffer: bool = False


class AwsFeatureGates(msgspec.Struct, frozen=True, kw_only=True):
    """Enabled features of the AWS provider."""

    node_class_cel: bool = msgspec.field(default=False, name="NodeClassCEL")
    """Quantities in spec.kubelet of an EC2NodeClass can be CEL expressions."""


def parse_feature_gates(text: str) -> FeatureGates:
    """Parse feature gates in Karpenter's format; gates of Karpenter that Joiner does not have are ignored.

    >>> parse_feature_gates("NodeOverlay=true, NodeRepair=false").node_overlay
    True

    Raises:
        ValueError: a part of *text* is not a name and ``true`` or ``false``.
    """
    return msgspec.convert(_parse_gates(text), FeatureGates)


def parse_aws_feature_gates(text: str) -> AwsFeatureGates:
    """Parse Karpenter's AWS_FEATURE_GATES in the same way.

    >>> parse_aws_feature_gates("NodeClassCEL=true").node_class_cel
    True

    Raises:
        ValueError: a part of *text* is not a name and ``true`` or ``false``.
    """
    return msgspec.convert(_parse_gates(text), AwsFeatureGates)


def _parse_gates(text: str) -> dict[str, bool]:
    gates: dict[str, bool] = {}
    for part in filter(None, (gate_text.strip() for gate_text in text.split(","))):
        name, _, value = part.partition("=")
        if value not in ("true", "false"):
            raise ValueError(f"feature gates: {part!r}: write Name=true or Name=false")
        gates[name.strip()] = value == "true"
    return gates
