"""The ports of `shared.ports` in front of a `Cloud`, in this process: the fast face."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from shared.errors import Conflict, Gone
from shared.model.ec2 import (
    CapacityReservation,
    ClusterFacts,
    FleetRequest,
    FleetResult,
    Image,
    Instance,
    InstanceStatus,
    InstanceTypeInfo,
    LaunchTemplate,
    PlacementGroup,
    Probe,
    Refusal,
    SecurityGroup,
    Selector,
    SpotPrice,
    Subnet,
    Tags,
)
from sim.cloud.cloud import Cloud

CLUSTER_TAG: Final = "eks:eks-cluster-name"
POOL_TAG: Final = "karpenter.sh/nodepool"


class CloudEc2:
    """`shared.ports.Ec2`, method by method."""

    def __init__(self, cloud: Cloud) -> None:
        """Speak for *cloud*."""
        self._cloud = cloud

    def create_fleet(self, request: FleetRequest) -> FleetResult:
        """Start instances now."""
        self._cloud.admit("CreateFleet")
        return self._cloud.create_fleet(request)

    def terminate_instances(self, instance_ids: Iterable[str]) -> None:
        """One call, in which those that are gone are passed over."""
        self._cloud.admit("TerminateInstances")
        for instance_id in instance_ids:
            with suppress(Gone):
                self._cloud.terminate([instance_id])

    def describe_instances(self, cluster: str) -> tuple[Instance, ...]:
        """Those with the cluster's tag and a NodePool's."""
        self._cloud.admit("DescribeInstances")
        return tuple(i for i in self._cloud.instances() if i.state != "terminated" and _is_ours(i.tags, cluster))

    def describe_instance(self, instance_id: str) -> Instance:
        """One, whosever it is."""
        self._cloud.admit("DescribeInstances")
        return self._cloud.instance(instance_id)

    def instance_statuses(self) -> tuple[InstanceStatus, ...]:
        """Of all with which something is wrong."""
        self._cloud.admit("DescribeInstanceStatus")
        return self._cloud.machines.statuses()

    def create_tags(self, instance_id: str, tags: Tags) -> None:
        """Add or overwrite."""
        self._cloud.admit("CreateTags")
        self._cloud.tag(instance_id, tags)

    def ensure_launch_template(self, template: LaunchTemplate) -> None:
        """Create, and be content if the name is taken."""
        self._cloud.admit("CreateLaunchTemplate")
        with suppress(Conflict):
            self._cloud.create_launch_template(template)

    def launch_templates(self, cluster: str) -> tuple[LaunchTemplate, ...]:
        """Those with the cluster's tag, content and all."""
        self._cloud.admit("DescribeLaunchTemplates")
        return self._cloud.templates.tagged(CLUSTER_TAG, cluster)

    def delete_launch_template(self, name: str) -> None:
        """Forget one, if it is there."""
        self._cloud.admit("DeleteLaunchTemplate")
        with suppress(Gone):
            self._cloud.templates.delete(name)

    def instance_types(self) -> tuple[InstanceTypeInfo, ...]:
        """All of them."""
        self._cloud.admit("DescribeInstanceTypes")
        return tuple(self._cloud.types.values())

    def offerings(self) -> tuple[tuple[str, str], ...]:
        """All of them."""
        self._cloud.admit("DescribeInstanceTypeOfferings")
        return self._cloud.offerings

    def spot_prices(self) -> tuple[SpotPrice, ...]:
        """What holds this hour."""
        self._cloud.admit("DescribeSpotPriceHistory")
        return self._cloud.prices.spot_list(self._cloud.clock.now())

    def subnets(self, selectors: tuple[Selector, ...]) -> tuple[Subnet, ...]:
        """What *selectors* match."""
        self._cloud.admit("DescribeSubnets")
        return self._cloud.network.select_subnets(selectors)

    def security_groups(self, selectors: tuple[Selector, ...]) -> tuple[SecurityGroup, ...]:
        """What *selectors* match."""
        self._cloud.admit("DescribeSecurityGroups")
        return self._cloud.network.select_security_groups(selectors)

    def images(self, selectors: tuple[Selector, ...]) -> tuple[Image, ...]:
        """What *selectors* match."""
        self._cloud.admit("DescribeImages")
        return self._cloud.images.select(selectors)

    def capacity_reservations(self, selectors: tuple[Selector, ...]) -> tuple[CapacityReservation, ...]:
        """What *selectors* match and has not ended."""
        self._cloud.admit("DescribeCapacityReservations")
        return self._cloud.reservations.select(selectors, self._cloud.clock.now())

    def placement_group(self, selector: Selector) -> PlacementGroup | None:
        """The one that *selector* names."""
        self._cloud.admit("DescribePlacementGroups")
        return self._cloud.reservations.group(selector)

    def refusals(self, probe: Probe) -> tuple[Refusal, ...]:
        """What would be refused."""
        for action in ("CreateLaunchTemplate", "RunInstances", "CreateFleet"):
            self._cloud.admit(action)
        return self._cloud.dry_runs.refusals(probe)


class CloudParameters:
    """`shared.ports.Parameters`."""

    def __init__(self, cloud: Cloud) -> None:
        """Speak for *cloud*."""
        self._cloud = cloud

    def parameter(self, name: str) -> str:
        """Answer the value."""
        self._cloud.admit("GetParameter")
        return self._cloud.images.parameter(name)


class CloudPrices:
    """`shared.ports.Prices`."""

    def __init__(self, cloud: Cloud) -> None:
        """Speak for *cloud*."""
        self._cloud = cloud

    def on_demand(self, region: str) -> Mapping[str, float]:
        """Answer the list of the cloud's own region; of others nothing is known."""
        self._cloud.admit("GetProducts")
        return self._cloud.prices.on_demand if region == self._cloud.region else {}


class CloudEks:
    """`shared.ports.Eks`."""

    def __init__(self, cloud: Cloud) -> None:
        """Speak for *cloud*."""
        self._cloud = cloud

    def cluster(self, name: str) -> ClusterFacts:
        """Answer what the control plane is."""
        self._cloud.admit("DescribeCluster")
        return self._cloud.cluster(name)


def _is_ours(tags: Tags, cluster: str) -> bool:
    have = dict(tags)
    return have.get(CLUSTER_TAG) == cluster and POOL_TAG in have
