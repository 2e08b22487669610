"""Settings of Karpenter, and of the launch of nodes."""

from typing import Annotated

import msgspec

from shared import settings_text
from shared.model.core.feature_gates import (
    AwsFeatureGates,
    FeatureGates,
    parse_aws_feature_gates,
    parse_feature_gates,
)
from shared.settings_by_topic.money import MoneySettings
from shared.settings_text import TextForm


class LaunchSettings(MoneySettings, frozen=True, kw_only=True):
    """Settings of Karpenter, and of the launch of nodes."""

    feature_gates: Annotated[str, TextForm(variable="FEATURE_GATES", parse=parse_feature_gates)] = ""
    """Feature gates of Karpenter, for example `NodeOverlay=true,StaticCapacity=true`."""
    aws_feature_gates: Annotated[str, TextForm(variable="AWS_FEATURE_GATES", parse=parse_aws_feature_gates)] = ""
    """Feature gates of Karpenter's AWS provider, for example `NodeClassCEL=true`."""
    disable_dry_run: Annotated[bool, TextForm(variable="DISABLE_DRY_RUN")] = False
    """`true`: Joiner makes no EC2 dry runs, so EC2NodeClasses do not report missing permissions."""
    scheduler_config: Annotated[str, TextForm(variable="SCHEDULER_CONFIG")] = ""
    """Default topology spread constraints: `podTopologySpread.defaultConstraints`, as for kube-scheduler, in JSON or
    YAML. If empty, pods without constraints are not spread."""
    vm_memory_overhead_percent: Annotated[
        float,
        msgspec.Meta(ge=0, lt=1),
        TextForm(variable="VM_MEMORY_OVERHEAD_PERCENT", allowed="a fraction of 1, like 0.075"),
    ] = 0.075
    """Fraction of an instance type's memory that its nodes do not have; used until a node of the type has reported its
    memory. A fraction of 1, although Karpenter's name for it says percent."""
    reserved_enis: Annotated[int, msgspec.Meta(ge=0), TextForm(variable="RESERVED_ENIS", allowed="0 or more")] = 0
    """Number of network interfaces of each node that pods cannot use."""
    spot_price_tolerance_percent: Annotated[
        int, msgspec.Meta(ge=0, le=1000), TextForm(allowed="0 to 1000, 0 for no limit")
    ] = 0
    """Maximum price of the Spot offerings in a launch, in percent above the cheapest of them. EC2 prefers offerings
    with much free capacity, even at a higher price. With a limit, nodes cost less above the planned price, but EC2 has
    fewer offerings to choose from, and Spot interruptions may become more frequent. NodeClaims with `minValues` have no
    limit. With the feature gate SpotToSpotConsolidation, the 15 cheapest instance types are kept. 0: no limit."""
    launch_nodes_per_minute: settings_text.LaunchLimit = 200
    """Launch circuit breaker: maximum number of nodes that the cluster launches within a minute. Further launches are
    delayed. 0: unlimited."""
    launch_usd_per_hour: settings_text.LaunchLimit = 500
    """Launch circuit breaker: maximum total price, in USD per hour, of the instances that the cluster launches within
    an hour. 0: unlimited."""
    launch_pool_nodes_per_minute: settings_text.LaunchLimit = 100
    """Launch circuit breaker: maximum number of nodes that each NodePool launches within a minute. 0: unlimited."""
    launch_pool_usd_per_hour: settings_text.LaunchLimit = 250
    """Launch circuit breaker: maximum total price, in USD per hour, of the instances that each NodePool launches within
    an hour. 0: unlimited."""

    @property
    def gates(self) -> FeatureGates:
        """The enabled features.

        Raises:
            ValueError: `feature_gates` cannot be parsed.
        """
        return parse_feature_gates(self.feature_gates)

    @property
    def aws_gates(self) -> AwsFeatureGates:
        """The enabled features of the AWS provider.

        Raises:
            ValueError: `aws_feature_gates` cannot be parsed.
        """
        return parse_aws_feature_gates(self.aws_feature_gates)
