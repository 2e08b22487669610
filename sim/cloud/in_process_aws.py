"""The ports of `shared.ports.aws` implemented by a `Cloud` in this process: the fast front end."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from shared.errors import Conflict, NotFound
from shared.model.cloud_provider.zonal_shift import ZonalShift
from shared.model.core.labels import LAUNCH_GROUP
from shared.model.ec2.account import (
    CapacityReservation,
    ControlPlaneFacts,
    Image,
    PlacementGroup,
    SecurityGroup,
    SelectorTerm,
    Subnet,
)
from shared.model.ec2.commitments import Commitments, ReservedInstances, SavingsPlan
from shared.model.ec2.dry_run import DryRunRefusal, DryRunRequest
from shared.model.ec2.fleet import EMPTY_RESULT_ERROR, FleetRequest, FleetResult
from shared.model.ec2.instance import Instance, InstanceStatus
from shared.model.ec2.instance_type_info import InstanceTypeInfo, SpotPrice
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import Tags
from sim.cloud.cloud import Cloud

CLUSTER_TAG: Final = "eks:eks-cluster-name"
NODEPOOL_TAG: Final = "karpenter.sh/nodepool"


class CloudPort:
    """A port on the simulated cloud."""

    def __init__(self, cloud: Cloud) -> None:
        """Use *cloud* as the backend."""
        self._cloud = cloud


class CloudEc2(CloudPort):
    """The port `shared.ports.aws.Ec2`."""

    def create_fleet(self, request: FleetRequest) -> FleetResult:
        """Launch instances now."""
        self._cloud.rate_limiter.check_call("CreateFleet")
        result = self._cloud.fleets.create(request)
        is_empty = not (result.instances or result.errors)
        return msgspec.structs.replace(result, errors=(EMPTY_RESULT_ERROR,)) if is_empty else result

    def terminate_instances(self, instance_ids: Iterable[str]) -> None:
        """Terminate the instances in one call; instances that are already gone are skipped."""
        self._cloud.rate_limiter.check_call("TerminateInstances")
        for instance_id in instance_ids:
            with suppress(NotFound):
                self._cloud.terminate_instances([instance_id])

    def describe_instances(self, cluster: str) -> tuple[Instance, ...]:
        """Return the instances with the cluster's tag and a NodePool tag."""
        self._cloud.rate_limiter.check_call("DescribeInstances")
        return tuple(
            i for i in self._cloud.instances.describe_all() if i.state != "terminated" and _is_ours(i.tags, cluster)
        )

    def describe_launch_group(self, group: str) -> tuple[Instance, ...]:
        """Return the instances with the tag of the launch group."""
        self._cloud.rate_limiter.check_call("DescribeInstances")
        instances = self._cloud.instances.describe_all()
        return tuple(i for i in instances if i.state != "terminated" and i.get_tag(LAUNCH_GROUP) == group)

    def describe_instance(self, instance_id: str) -> Instance:
        """Return one instance, regardless of its tags."""
        self._cloud.rate_limiter.check_call("DescribeInstances")
        return self._cloud.instances.describe(instance_id)

    def describe_instance_statuses(self) -> tuple[InstanceStatus, ...]:
        """Return the statuses of all instances with a failed check or a scheduled event."""
        self._cloud.rate_limiter.check_call("DescribeInstanceStatus")
        return self._cloud.instances.describe_statuses()

    def create_tags(self, instance_id: str, tags: Tags) -> None:
        """Add or overwrite tags."""
        self._cloud.rate_limiter.check_call("CreateTags")
        self._cloud.instances.tag(instance_id, tags)

    def ensure_launch_template(self, template: LaunchTemplate) -> None:
        """Create the launch template; if the name exists, that is no error."""
        self._cloud.rate_limiter.check_call("CreateLaunchTemplate")
        with suppress(Conflict):
            self._cloud.create_launch_template(template)

    def describe_launch_templates(self, cluster: str) -> tuple[LaunchTemplate, ...]:
        """Return the launch templates with the cluster's tag, including their content."""
        self._cloud.rate_limiter.check_call("DescribeLaunchTemplates")
        return self._cloud.templates.list_by_tag(CLUSTER_TAG, cluster)

    def delete_launch_template(self, name: str) -> None:
        """Delete a launch template if it exists."""
        self._cloud.rate_limiter.check_call("DeleteLaunchTemplate")
        with suppress(NotFound):
            self._cloud.templates.delete(name)

    def describe_instance_types(self) -> tuple[InstanceTypeInfo, ...]:
        """Return all instance types."""
        self._cloud.rate_limiter.check_call("DescribeInstanceTypes")
        return tuple(self._cloud.types.values())

    def describe_offerings(self) -> tuple[tuple[str, str], ...]:
        """Return all offerings."""
        self._cloud.rate_limiter.check_call("DescribeInstanceTypeOfferings")
        return self._cloud.offerings

    def describe_spot_prices(self) -> tuple[SpotPrice, ...]:
        """Return the spot prices of the current hour."""
        self._cloud.rate_limiter.check_call("DescribeSpotPriceHistory")
        return self._cloud.prices.list_spot_prices(self._cloud.clock.get_time())

    def describe_subnets(self, selectors: tuple[SelectorTerm, ...]) -> tuple[Subnet, ...]:
        """Return the subnets that match *selectors*."""
        self._cloud.rate_limiter.check_call("DescribeSubnets")
        return self._cloud.network.select_subnets(selectors)

    def describe_security_groups(self, selectors: tuple[SelectorTerm, ...]) -> tuple[SecurityGroup, ...]:
        """Return the security groups that match *selectors*."""
        self._cloud.rate_limiter.check_call("DescribeSecurityGroups")
        return self._cloud.network.select_security_groups(selectors)

    def describe_images(self, selectors: tuple[SelectorTerm, ...]) -> tuple[Image, ...]:
        """Return the images that match *selectors*."""
        self._cloud.rate_limiter.check_call("DescribeImages")
        return self._cloud.images.select(selectors)

    def describe_capacity_reservations(
        self, selectors: tuple[SelectorTerm, ...], *, are_scheduled_included: bool = False
    ) -> tuple[CapacityReservation, ...]:
        """Return the reservations that match *selectors* and have not ended."""
        self._cloud.rate_limiter.check_call("DescribeCapacityReservations")
        reservations = self._cloud.reservations.select(selectors, self._cloud.clock.get_time())
        return tuple(item for item in reservations if are_scheduled_included or item.starts_at is None)

    def describe_other_instances(self, cluster: str) -> tuple[Instance, ...]:
        """Return the pending and running instances without our tags for *cluster*."""
        self._cloud.rate_limiter.check_call("DescribeInstances")
        return tuple(
            instance
            for instance in self._cloud.instances.describe_all()
            if instance.state in ("pending", "running") and not _is_ours(instance.tags, cluster)
        )

    def describe_reserved_instances(self) -> tuple[ReservedInstances, ...]:
        """Return the active Reserved Instances."""
        self._cloud.rate_limiter.check_call("DescribeReservedInstances")
        return self._cloud.commitments.list_reserved(self._cloud.clock.get_time())

    def describe_placement_group(self, selector: SelectorTerm) -> PlacementGroup | None:
        """Return the placement group that *selector* names."""
        self._cloud.rate_limiter.check_call("DescribePlacementGroups")
        return self._cloud.reservations.find_group(selector)

    def dry_run_launch(self, probe: DryRunRequest) -> tuple[DryRunRefusal, ...]:
        """Return the calls of a launch that would be refused."""
        for action in ("CreateLaunchTemplate", "RunInstances", "CreateFleet"):
            self._cloud.rate_limiter.check_call(action)
        return self._cloud.dry_runs.list_refusals(probe)


class CloudParameters(CloudPort):
    """The port for SSM Parameter Store of `shared.ports.aws`."""

    def get_parameter(self, name: str) -> str:
        """Return the parameter's value."""
        self._cloud.rate_limiter.check_call("GetParameter")
        return self._cloud.images.get_parameter(name)


class CloudPricing(CloudPort):
    """The port for the AWS Price List of `shared.ports.aws`."""

    def get_on_demand_prices(self, region: str) -> Mapping[str, float]:
        """Return the price list of the cloud's own region; empty for other regions."""
        self._cloud.rate_limiter.check_call("GetProducts")
        return self._cloud.prices.on_demand if region == self._cloud.region else {}


class CloudSavingsPlans(CloudPort):
    """The port `shared.ports.aws.SavingsPlansService`."""

    def describe_savings_plans(self, region: str) -> tuple[SavingsPlan, ...]:
        """Return the active plans that cover instances in *region*."""
        self._cloud.rate_limiter.check_call("DescribeSavingsPlans")
        return self._cloud.commitments.list_plans(self._cloud.clock.get_time(), region)


class CloudZonalShift(CloudPort):
    """The port `shared.ports.aws.ZonalShiftService`."""

    def get_zonal_shifts(self, cluster_arn: str) -> tuple[ZonalShift, ...]:
        """Return the shifts that ARC applies."""
        self._cloud.rate_limiter.check_call("GetManagedResource")
        shifts = self._cloud.zonal_shifts
        shifts.check_managed(cluster_arn)
        return tuple(item.shift for item in shifts.list_shifts(self._cloud.clock.get_time()) if item.is_applied)


class CloudPayerAccount(CloudPort):
    """The port `shared.ports.aws.PayerAccount`; who may assume the role is checked in front of the port."""

    def describe_commitments(self, region: str) -> Commitments:
        """Return the active commitments of the payer account."""
        self._cloud.rate_limiter.check_call("DescribeSavingsPlans")
        commitments, now = self._cloud.payer.commitments, self._cloud.clock.get_time()
        return Commitments(reserved=commitments.list_reserved(now), plans=commitments.list_plans(now, region))


class CloudEks(CloudPort):
    """The port `shared.ports.aws.Eks`."""

    def describe_cluster(self, name: str) -> ControlPlaneFacts:
        """Return the facts about the control plane."""
        self._cloud.rate_limiter.check_call("DescribeCluster")
        return self._cloud.describe_cluster(name)


def _is_ours(tags: Tags, cluster: str) -> bool:
    values_by_key = dict(tags)
    return values_by_key.get(CLUSTER_TAG) == cluster and NODEPOOL_TAG in values_by_key
