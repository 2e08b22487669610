"""The AWS APIs as protocols: EC2, SSM parameters, prices, Savings Plans, zonal shifts and EKS."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from shared.model.cloud_provider.zonal_shift import ZonalShift
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
from shared.model.ec2.fleet import FleetRequest, FleetResult
from shared.model.ec2.instance import Instance, InstanceStatus
from shared.model.ec2.instance_type_info import InstanceTypeInfo, SpotPrice
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import Tags


class Ec2(Protocol):
    """The EC2 calls that Joiner makes. All pages are read; one page that fails makes the call fail."""

    def create_fleet(self, request: FleetRequest) -> FleetResult:
        """Launch instances with an `instant` fleet. Errors per offering are in the result, not raised.

        Raises:
            Invalid: EC2 rejects the request; `code` is EC2's error code.
            NotFound: a launch template does not exist.
        """

    def terminate_instances(self, instance_ids: Iterable[str]) -> None:
        """Terminate *instance_ids*; instances that do not exist any more cause no error.

        Raises:
            Forbidden: the role lacks the permission, or EC2 does not know an instance (yet).
        """

    def describe_instances(self, cluster: str) -> tuple[Instance, ...]:
        """Return every instance with our tags for *cluster*, in all states but `terminated`, sorted by id."""

    def describe_launch_group(self, group: str) -> tuple[Instance, ...]:
        """Return every instance with the tag of the launch group *group*, in all states but `terminated`, sorted by id.

        Instances that were launched a moment ago can be absent.
        """

    def describe_instance(self, instance_id: str) -> Instance:
        """Return one instance, also if `terminated` while EC2 still returns it.

        Raises:
            NotFound: EC2 does not know it (yet: Describe can lag behind CreateFleet).
        """

    def describe_instance_statuses(self) -> tuple[InstanceStatus, ...]:
        """Return the instances of the account that fail a status check or have a scheduled event, sorted by id."""

    def create_tags(self, instance_id: str, tags: Tags) -> None:
        """Add or overwrite *tags* of an instance.

        Raises:
            NotFound: EC2 does not know the instance.
            Forbidden: the role lacks the permission, or EC2 does not know the instance (yet).
        """

    def ensure_launch_template(self, template: LaunchTemplate) -> None:
        """Create *template* unless its name exists."""

    def describe_launch_templates(self, cluster: str) -> tuple[LaunchTemplate, ...]:
        """Return our launch templates (name, tags, created_at; the content can be empty), sorted by name."""

    def delete_launch_template(self, name: str) -> None:
        """Delete a launch template; it is not an error if it does not exist."""

    def describe_instance_types(self) -> tuple[InstanceTypeInfo, ...]:
        """Return every HVM instance type of x86_64 or arm64, sorted by name."""

    def describe_offerings(self) -> tuple[tuple[str, str], ...]:
        """Return (instance type, zone) pairs, sorted."""

    def describe_spot_prices(self) -> tuple[SpotPrice, ...]:
        """Return the newest Linux spot price per instance type and zone, sorted."""

    def describe_subnets(self, selectors: tuple[SelectorTerm, ...]) -> tuple[Subnet, ...]:
        """Return the union of the subnets that match *selectors*, most free addresses first, then by id."""

    def describe_security_groups(self, selectors: tuple[SelectorTerm, ...]) -> tuple[SecurityGroup, ...]:
        """Return the union of the security groups that match *selectors*, sorted by id."""

    def describe_images(self, selectors: tuple[SelectorTerm, ...]) -> tuple[Image, ...]:
        """Return the available images that match *selectors* (id, or name/owner/tags), newest first, then by id."""

    def describe_capacity_reservations(
        self, selectors: tuple[SelectorTerm, ...], *, are_scheduled_included: bool = False
    ) -> tuple[CapacityReservation, ...]:
        """Return the active reservations that match *selectors* (id, or tags, owner and criteria), sorted by id.

        With *are_scheduled_included*, those that start later are returned as well.
        """

    def describe_other_instances(self, cluster: str) -> tuple[Instance, ...]:
        """Return the pending and running Linux instances of the account without our tags for *cluster*, sorted by id.

        Instances on dedicated hardware are not included.
        """

    def describe_reserved_instances(self) -> tuple[ReservedInstances, ...]:
        """Return the active Reserved Instances of the account for Linux with default tenancy, sorted by id."""

    def describe_placement_group(self, selector: SelectorTerm) -> PlacementGroup | None:
        """Return the available placement group with that id or name, None if there is none."""

    def dry_run_launch(self, probe: DryRunRequest) -> tuple[DryRunRefusal, ...]:
        """Make the calls of a launch with DryRun, which creates nothing; return the refusals of EC2 by action, sorted.

        Each call is made once: after a `Throttled` or `Unreachable`, the result of all calls is unknown.
        """


class ParameterStore(Protocol):
    """SSM Parameter Store."""

    def get_parameter(self, name: str) -> str:
        """Return the parameter's value.

        Raises:
            NotFound: the parameter does not exist.
        """


class PricingService(Protocol):
    """The AWS Price List service."""

    def get_on_demand_prices(self, region: str) -> Mapping[str, float]:
        """Return USD per hour by instance type: Linux, shared tenancy (metal: dedicated)."""


class SavingsPlansService(Protocol):
    """The AWS Savings Plans API."""

    def describe_savings_plans(self, region: str) -> tuple[SavingsPlan, ...]:
        """Return the active Savings Plans of the account that cover instances in *region*, sorted by id.

        Their rates are those for Linux with shared tenancy.
        """


class ZonalShiftService(Protocol):
    """The zonal shift API of Amazon Application Recovery Controller (ARC)."""

    def get_zonal_shifts(self, cluster_arn: str) -> tuple[ZonalShift, ...]:
        """Return the shifts that ARC applies to the cluster, one for each zone, sorted by zone id.

        Raises:
            NotFound: zonal shift is not enabled for the cluster.
        """


class PayerAccount(Protocol):
    """A payer account of AWS, through an IAM role of it."""

    def describe_commitments(self, region: str) -> Commitments:
        """Return its active Reserved Instances in *region*, and its Savings Plans that cover instances there.

        Raises:
            Forbidden: the role cannot be assumed, or may not read them.
        """


class Eks(Protocol):
    """The Amazon EKS API."""

    def describe_cluster(self, name: str) -> ControlPlaneFacts:
        """Return the facts about the control plane.

        Raises:
            NotFound: the cluster does not exist.
        """
