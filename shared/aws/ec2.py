"""EC2, in the calls we make: what is said is in the modules beside this one, here is only who is asked, and how often.

Describes are patient and read all pages, in the largest pages that EC2 allows. CreateFleet is attempted once: its
client token makes the next cycle's repetition the same call.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from shared.aws.clients import Clients
from shared.aws.ec2_answers import (
    image_from_wire,
    instance_from_wire,
    launch_template_from_wire,
    newest_prices,
    placement_group_from_wire,
    reservation_from_wire,
    security_group_from_wire,
    subnet_from_wire,
)
from shared.aws.ec2_dry_runs import refused
from shared.aws.ec2_filters import image_queries, reservation_queries, security_group_queries, subnet_queries
from shared.aws.ec2_fleet import fleet_call, fleet_result_from_wire
from shared.aws.ec2_statuses import QUERIES, statuses_from_wire
from shared.aws.ec2_templates import launch_template_call
from shared.aws.ec2_types import instance_type_from_wire
from shared.aws.errors import code_of, faults
from shared.errors import Conflict, Gone, Invalid
from shared.model.ec2 import (
    CapacityReservation,
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

_CLUSTER_TAG: Final = "eks:eks-cluster-name"
_TAG_KEYS: Final = ("karpenter.sh/nodepool", "karpenter.k8s.aws/ec2nodeclass")
_STATES: Final = ["pending", "running", "stopping", "stopped", "shutting-down"]
_TERMINATE_AT_ONCE: Final = 500
_NO_SPOT_ROLE: Final = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
"""Not we may not, but spot may not: an answer about the request."""


class BotoEc2:
    """`shared.ports.Ec2` over boto3."""

    def __init__(self, clients: Clients, clock: Callable[[], datetime]) -> None:
        """Calls nothing yet. *clock* says from when on spot prices are wanted: now."""
        self._clients = clients
        self._clock = clock

    def create_fleet(self, request: FleetRequest) -> FleetResult:
        """CreateFleet, once.

        Raises:
            Invalid: EC2 refuses the request, or something it names other than a launch template does not exist.
            Gone: a launch template does not exist.
        """
        with faults(f"ec2:CreateFleet {request.client_token}"):
            try:
                answer = self._clients.once("ec2").create_fleet(**fleet_call(request))
            except ClientError as error:
                code = code_of(error)
                if code == _NO_SPOT_ROLE or (".NotFound" in code and "LaunchTemplate" not in code):
                    raise Invalid(f"ec2:CreateFleet {request.client_token}: {error}", code=code) from error
                raise
        return fleet_result_from_wire(answer, request)

    def terminate_instances(self, instance_ids: Iterable[str]) -> None:
        """TerminateInstances, at most 500 at once.

        EC2 refuses the whole list if it misses one of it: such a list is halved until only what is gone is left out.
        """
        ids = sorted(set(instance_ids))
        for start in range(0, len(ids), _TERMINATE_AT_ONCE):
            self._terminate(ids[start : start + _TERMINATE_AT_ONCE])

    def describe_instances(self, cluster: str) -> tuple[Instance, ...]:
        """DescribeInstances by our three tags, all states but `terminated`, sorted by id."""
        keys = [("tag-key", [key]) for key in _TAG_KEYS]
        wanted = _filters((f"tag:{_CLUSTER_TAG}", [cluster]), *keys, ("instance-state-name", _STATES))
        reservations = self._pages("describe_instances", "Reservations", 1000, Filters=wanted)
        found = (instance_from_wire(each) for reservation in reservations for each in reservation["Instances"])
        return tuple(sorted(found, key=lambda instance: instance.instance_id))

    def describe_instance(self, instance_id: str) -> Instance:
        """DescribeInstances of one id.

        Raises:
            Gone: EC2 does not know it, or not yet.
        """
        with faults(f"ec2:DescribeInstances {instance_id}"):
            answer = self._clients.patient("ec2").describe_instances(InstanceIds=[instance_id])
        for reservation in answer["Reservations"]:
            for instance in reservation["Instances"]:
                return instance_from_wire(instance)
        raise Gone(f"ec2:DescribeInstances {instance_id}: an empty answer")

    def instance_statuses(self) -> tuple[InstanceStatus, ...]:
        """DescribeInstanceStatus, once for each thing that may be wrong."""
        call, key = "describe_instance_status", "InstanceStatuses"
        pages = (self._pages(call, key, 1000, Filters=_filters(query)) for query in QUERIES)
        return statuses_from_wire(one for found in pages for one in found)

    def create_tags(self, instance_id: str, tags: Tags) -> None:
        """CreateTags.

        Raises:
            Gone: EC2 does not know the instance.
        """
        with faults(f"ec2:CreateTags {instance_id}"):
            self._clients.patient("ec2").create_tags(
                Resources=[instance_id], Tags=[{"Key": key, "Value": value} for key, value in tags]
            )

    def ensure_launch_template(self, template: LaunchTemplate) -> None:
        """DescribeLaunchTemplates, and CreateLaunchTemplate if EC2 does not know the name."""
        ec2 = self._clients.patient("ec2")
        try:
            with faults(f"ec2:DescribeLaunchTemplates {template.name}"):
                known = ec2.describe_launch_templates(LaunchTemplateNames=[template.name])["LaunchTemplates"]
        except Gone:
            known = []
        if known:
            return
        try:
            with faults(f"ec2:CreateLaunchTemplate {template.name}"):
                ec2.create_launch_template(**launch_template_call(template, self._clients.region))
        except Conflict:
            return

    def launch_templates(self, cluster: str) -> tuple[LaunchTemplate, ...]:
        """DescribeLaunchTemplates by our tag: name, tags and time of creation, sorted by name."""
        wanted = _filters((f"tag:{_CLUSTER_TAG}", [cluster]))
        found = self._pages("describe_launch_templates", "LaunchTemplates", 200, Filters=wanted)
        return tuple(sorted(map(launch_template_from_wire, found), key=lambda template: template.name))

    def delete_launch_template(self, name: str) -> None:
        """DeleteLaunchTemplate; that it is gone already is no error."""
        try:
            with faults(f"ec2:DeleteLaunchTemplate {name}"):
                self._clients.patient("ec2").delete_launch_template(LaunchTemplateName=name)
        except Gone:
            return

    def instance_types(self) -> tuple[InstanceTypeInfo, ...]:
        """DescribeInstanceTypes: hvm, x86_64 or arm64, sorted by name."""
        wanted = _filters(
            ("supported-virtualization-type", ["hvm"]),
            ("processor-info.supported-architecture", ["x86_64", "arm64"]),
        )
        found = self._pages("describe_instance_types", "InstanceTypes", 100, Filters=wanted)
        return tuple(sorted(map(instance_type_from_wire, found), key=lambda info: info.name))

    def offerings(self) -> tuple[tuple[str, str], ...]:
        """DescribeInstanceTypeOfferings by zone, sorted."""
        call = "describe_instance_type_offerings"
        found = self._pages(call, "InstanceTypeOfferings", 1000, LocationType="availability-zone")
        return tuple(sorted({(each["InstanceType"], each["Location"]) for each in found}))

    def spot_prices(self) -> tuple[SpotPrice, ...]:
        """DescribeSpotPriceHistory from now on, which is the price in force of each type and zone."""
        found = self._pages(
            "describe_spot_price_history",
            "SpotPriceHistory",
            2000,
            ProductDescriptions=["Linux/UNIX", "Linux/UNIX (Amazon VPC)"],
            StartTime=self._clock(),
        )
        return newest_prices(found)

    def subnets(self, selectors: tuple[Selector, ...]) -> tuple[Subnet, ...]:
        """DescribeSubnets once per query that *selectors* make; most free addresses first, then by id."""
        pages = (self._pages("describe_subnets", "Subnets", 500, **query) for query in subnet_queries(selectors))
        found = {subnet_from_wire(each) for page in pages for each in page}
        return tuple(sorted(found, key=lambda subnet: (-subnet.available_ip_count, subnet.subnet_id)))

    def security_groups(self, selectors: tuple[Selector, ...]) -> tuple[SecurityGroup, ...]:
        """DescribeSecurityGroups once per query that *selectors* make, sorted by id."""
        call = "describe_security_groups"
        pages = (self._pages(call, "SecurityGroups", 500, **query) for query in security_group_queries(selectors))
        return tuple(sorted({security_group_from_wire(each) for page in pages for each in page}))

    def images(self, selectors: tuple[Selector, ...]) -> tuple[Image, ...]:
        """DescribeImages once per query that *selectors* make; newest first, then by id."""
        pages = (self._pages("describe_images", "Images", 1000, **query) for query in image_queries(selectors))
        found = {image.image_id: image for page in pages for image in map(image_from_wire, page)}
        return tuple(sorted(found.values(), key=lambda image: (-image.created_at.timestamp(), image.image_id)))

    def capacity_reservations(self, selectors: tuple[Selector, ...]) -> tuple[CapacityReservation, ...]:
        """DescribeCapacityReservations once per query that *selectors* make, active ones, sorted by id."""
        call, key = "describe_capacity_reservations", "CapacityReservations"
        pages = (self._pages(call, key, 1000, **query) for query in reservation_queries(selectors))
        now = self._clock()
        found = {one.reservation_id: one for page in pages for one in map(reservation_from_wire, page)}
        return tuple(found[name] for name in sorted(found) if (end := found[name].ends_at) is None or end > now)

    def placement_group(self, selector: Selector) -> PlacementGroup | None:
        """DescribePlacementGroups by id or name, available ones; the answer has no pages."""
        wanted = {"GroupIds": [selector.id]} if selector.id else {"GroupNames": [selector.name]}
        try:
            with faults(f"ec2:DescribePlacementGroups {selector.id or selector.name}"):
                answer = self._clients.patient("ec2").describe_placement_groups(
                    Filters=_filters(("state", ["available"])), **wanted
                )
        except Gone:
            return None
        except Invalid as fault:
            if "PlacementGroup.Unknown" in fault.code:
                return None
            raise
        return next(map(placement_group_from_wire, answer["PlacementGroups"]), None)

    def refusals(self, probe: Probe) -> tuple[Refusal, ...]:
        """CreateLaunchTemplate, RunInstances and CreateFleet with DryRun, one attempt each."""
        return refused(self._clients, probe)

    def _pages(self, call: str, key: str, page_size: int, **query: Any) -> Iterator[Any]:  # noqa: ANN401 - boto3's
        with faults(f"ec2:{call}"):
            pages = self._clients.patient("ec2").get_paginator(call)
            for page in pages.paginate(PaginationConfig={"PageSize": page_size}, **query):
                yield from page[key]

    def _terminate(self, ids: list[str]) -> None:
        try:
            with faults(f"ec2:TerminateInstances {', '.join(ids)}"):
                self._clients.patient("ec2").terminate_instances(InstanceIds=ids)
        except Gone:
            if len(ids) > 1:
                self._terminate(ids[: len(ids) // 2])
                self._terminate(ids[len(ids) // 2 :])


def _filters(*wanted: tuple[str, list[str]]) -> list[dict[str, Any]]:
    return [{"Name": name, "Values": values} for name, values in wanted]
