"""What may be chosen for a deployment, and what is chosen when nobody says.

Each knob is a context value named `joiner:` and its field with hyphens:
``cdk deploy -c joiner:cluster=prod -c joiner:log-days=7``. cdk.json lists them all; the command line overrules it.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

CLUSTER_NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,59}")
"""EKS allows 100 characters; SQS gives a queue 80, of which ours need 20."""


class Knobs(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """One deployment's choices; lists are comma-separated, as a command line has them."""

    cluster: str = "demo"
    """The EKS cluster's name; one stack serves one cluster."""
    kube_endpoint: str = ""
    """Empty: asked from eks:DescribeCluster."""
    mode: str = "active"
    """`plan` decides and reports, and changes nothing."""
    preference_policy: str = "Respect"
    min_values_policy: str = "Strict"
    feature_gates: str = ""
    vm_memory_overhead_percent: str = "0.075"
    reserved_enis: str = "0"
    log_days: int = 30
    journal_days: int = 30
    """How long `explain` and replay can look back."""
    subnets: str = ""
    """Where the functions get network interfaces; needed only if the API server has no public endpoint."""
    security_groups: str = ""
    """Of those interfaces."""
    node_roles: str = ""
    """Names of further roles that nodes may have: those of the instance profiles that an EC2NodeClass names itself."""
    ssm_parameters: str = ""
    """Names of private image parameters; the public ones under /aws/service may always be read."""
    alarm_topic: str = ""
    """ARN of an SNS topic that hears of alarms."""

    def __post_init__(self) -> None:
        """Refuse what would fail only while deploying.

        Raises:
            ValueError: a value cannot be deployed.
        """
        if not CLUSTER_NAME.fullmatch(self.cluster):
            raise ValueError(f"joiner:cluster is {self.cluster!r}: want {CLUSTER_NAME.pattern}")
        if self.mode not in ("active", "plan"):
            raise ValueError(f"joiner:mode is {self.mode!r}: want active or plan")
        if bool(self.subnets) != bool(self.security_groups):
            raise ValueError("joiner:subnets and joiner:security-groups go together")

    @classmethod
    def from_context(cls, value_of: Callable[[str], object]) -> "Knobs":
        """Read a context, *value_of* a key, None if it is missing; the knob then has its default.

        Raises:
            msgspec.ValidationError: a number is none.
            ValueError: a value cannot be deployed.
        """
        names = cls.__struct_encode_fields__
        context = {name: value for name in names if (value := value_of(f"joiner:{name}")) is not None}
        return msgspec.convert(context, cls, strict=False)


def listed(value: str) -> list[str]:
    """Answer the items of a comma-separated *value*.

    >>> listed("a, b,"), listed("")
    (['a', 'b'], [])
    """
    return [item.strip() for item in value.split(",") if item.strip()]
