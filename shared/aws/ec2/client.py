"""The EC2 client: the API calls that Joiner makes.

The neighboring modules build the requests and parse the responses. Describe calls are retried and read all pages, in
the largest page size that EC2 allows. CreateFleet is attempted once: its client token makes the repetition in the next
run the same call.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from shared.aws.clients import Clients
from shared.aws.ec2.dry_run import call_dry_runs
from shared.aws.ec2.filters import (
    RESERVATION_IDS,
    DescribeQuery,
    build_image_queries,
    build_reservation_queries,
    build_security_group_queries,
    build_subnet_queries,
)
from shared.aws.ec2.fleet import build_fleet_call, parse_fleet_result
from shared.aws.ec2.instance_status import STATUS_QUERIES, parse_instance_statuses
from shared.aws.ec2.instance_types import parse_instance_type
from shared.aws.ec2.launch_template import build_launch_template_call
from shared.aws.ec2.reserved_instances import describe_reserved_instances
from shared.aws.ec2.response_parsing import (
    parse_image,
    parse_instance,
    parse_launch_template,
    parse_placement_group,
    parse_reservation,
    parse_security_group,
    parse_subnet,
)
from shared.aws.ec2.spot_prices import build_spot_price_query, select_newest_prices
from shared.aws.errors import get_error_code, translate_errors
from shared.errors import Conflict, Invalid, NotFound
from shared.model.core.labels import LAUNCH_GROUP, NODECLASS, NODEPOOL
from shared.model.ec2.account import CapacityReservation, Image, PlacementGroup, SecurityGroup, SelectorTerm, Subnet
from shared.model.ec2.commitments import ReservedInstances
from shared.model.ec2.dry_run import DryRunRefusal, DryRunRequest
from shared.model.ec2.fleet import NO_SPOT_ROLE_CODE, FleetRequest, FleetResult
from shared.model.ec2.instance import CLUSTER_TAG, Instance, InstanceStatus
from shared.model.ec2.instance_type_info import InstanceTypeInfo, SpotPrice
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import Tags

_REQUIRED_TAG_KEYS: Final = (NODEPOOL, NODECLASS)
_LIVE_STATES: Final = ["pending", "running", "stopping", "stopped", "shutting-down"]
_MAX_IDS_PER_TERMINATE_CALL: Final = 500


class BotoEc2:
    """`shared.ports.aws.Ec2` over boto3."""

    def __init__(self, clients: Clients, clock: Callable[[], datetime]) -> None:
        """Make no call yet. *clock* gives the current time, from which spot prices are read."""
        self._clients = clients
        self._clock = clock

    def create_fleet(self, request: FleetRequest) -> FleetResult:
        """Call CreateFleet, in one attempt.

        Raises:
            Invalid: EC2 rejects the request, or a resource that it names, other than a launch template, does not exist.
            NotFound: a launch template does not exist.
        """
        with translate_errors(f"ec2:CreateFleet {request.client_token}"):
            try:
                response = self._clients.get_single_attempt_client("ec2").create_fleet(**build_fleet_call(request))
            except ClientError as error:
                code = get_error_code(error)
                if code == NO_SPOT_ROLE_CODE or (".NotFound" in code and "LaunchTemplate" not in code):
                    raise Invalid(f"ec2:CreateFleet {request.client_token}: {error}", code=code) from error
                raise
        return parse_fleet_result(response, request)

    def terminate_instances(self, instance_ids: Iterable[str]) -> None:
        """Call TerminateInstances, with at most 500 instances per call.

        EC2 rejects the whole list if one instance does not exist: such a list is halved until only the missing
        instances are left out.
        """
        ids = sorted(set(instance_ids))
        for start in range(0, len(ids), _MAX_IDS_PER_TERMINATE_CALL):
            self._terminate_batch(ids[start : start + _MAX_IDS_PER_TERMINATE_CALL])

    def describe_instances(self, cluster: str) -> tuple[Instance, ...]:
        """Call DescribeInstances by the three Joiner tags, in all states but `terminated`; sorted by id."""
        keys = [("tag-key", [key]) for key in _REQUIRED_TAG_KEYS]
        return self._list_instances((f"tag:{CLUSTER_TAG}", [cluster]), *keys)

    def describe_launch_group(self, group: str) -> tuple[Instance, ...]:
        """Call DescribeInstances by the tag of the launch group, in all states but `terminated`; sorted by id."""
        return self._list_instances((f"tag:{LAUNCH_GROUP}", [group]))

    def describe_instance(self, instance_id: str) -> Instance:
        """Call DescribeInstances for one id.

        Raises:
            NotFound: the instance does not exist, or EC2 does not return it yet.
        """
        with translate_errors(f"ec2:DescribeInstances {instance_id}"):
            response = self._clients.get_retrying_client("ec2").describe_instances(InstanceIds=[instance_id])
        for reservation in response["Reservations"]:
            for instance in reservation["Instances"]:
                return parse_instance(instance)
        raise NotFound(f"ec2:DescribeInstances {instance_id}: empty response")

    def describe_instance_statuses(self) -> tuple[InstanceStatus, ...]:
        """Call DescribeInstanceStatus, once for each kind of failure."""
        call, key = "describe_instance_status", "InstanceStatuses"
        pages = (self._paginate(call, key, 1000, Filters=_build_filters(query)) for query in STATUS_QUERIES)
        return parse_instance_statuses(status for page in pages for status in page)

    def create_tags(self, instance_id: str, tags: Tags) -> None:
        """Call CreateTags.

        Raises:
            NotFound: the instance does not exist.
        """
        with translate_errors(f"ec2:CreateTags {instance_id}"):
            self._clients.get_retrying_client("ec2").create_tags(
                Resources=[instance_id], Tags=[{"Key": key, "Value": value} for key, value in tags]
            )

    def ensure_launch_template(self, template: LaunchTemplate) -> None:
        """Call DescribeLaunchTemplates, and CreateLaunchTemplate if the name does not exist."""
        ec2 = self._clients.get_retrying_client("ec2")
        try:
            with translate_errors(f"ec2:DescribeLaunchTemplates {template.name}"):
                existing_templates = ec2.describe_launch_templates(LaunchTemplateNames=[template.name])[
                    "LaunchTemplates"
                ]
        except NotFound:
            existing_templates = []
        if existing_templates:
            return
        try:
            with translate_errors(f"ec2:CreateLaunchTemplate {template.name}"):
                ec2.create_launch_template(**build_launch_template_call(template, self._clients.region))
        except Conflict:
            return

    def describe_launch_templates(self, cluster: str) -> tuple[LaunchTemplate, ...]:
        """Call DescribeLaunchTemplates by the cluster tag; return name, tags and creation time, sorted by name."""
        filters = _build_filters((f"tag:{CLUSTER_TAG}", [cluster]))
        templates = self._paginate("describe_launch_templates", "LaunchTemplates", 200, Filters=filters)
        return tuple(sorted(map(parse_launch_template, templates), key=lambda template: template.name))

    def delete_launch_template(self, name: str) -> None:
        """Call DeleteLaunchTemplate; a launch template that does not exist is no error."""
        try:
            with translate_errors(f"ec2:DeleteLaunchTemplate {name}"):
                self._clients.get_retrying_client("ec2").delete_launch_template(LaunchTemplateName=name)
        except NotFound:
            return

    def describe_instance_types(self) -> tuple[InstanceTypeInfo, ...]:
        """Call DescribeInstanceTypes for hvm types of x86_64 or arm64; sorted by name."""
        filters = _build_filters(
            ("supported-virtualization-type", ["hvm"]), ("processor-info.supported-architecture", ["x86_64", "arm64"])
        )
        instance_types = self._paginate("describe_instance_types", "InstanceTypes", 100, Filters=filters)
        return tuple(sorted(map(parse_instance_type, instance_types), key=lambda info: info.name))

    def describe_offerings(self) -> tuple[tuple[str, str], ...]:
        """Call DescribeInstanceTypeOfferings by zone; return (instance type, zone) pairs, sorted."""
        call = "describe_instance_type_offerings"
        offerings = self._paginate(call, "InstanceTypeOfferings", 1000, LocationType="availability-zone")
        return tuple(sorted({(offering["InstanceType"], offering["Location"]) for offering in offerings}))

    def describe_spot_prices(self) -> tuple[SpotPrice, ...]:
        """Call DescribeSpotPriceHistory from now on, which returns the current price of each type and zone."""
        call, query = "describe_spot_price_history", build_spot_price_query(self._clock())
        return select_newest_prices(self._paginate(call, "SpotPriceHistory", 1000, **query))

    def describe_subnets(self, selectors: tuple[SelectorTerm, ...]) -> tuple[Subnet, ...]:
        """Call DescribeSubnets once per query built from *selectors*; most free addresses first, then by id."""
        pages = (
            self._paginate("describe_subnets", "Subnets", 500, **query) for query in build_subnet_queries(selectors)
        )
        subnets = {parse_subnet(subnet) for page in pages for subnet in page}
        return tuple(sorted(subnets, key=lambda subnet: (-subnet.available_ip_count, subnet.subnet_id)))

    def describe_security_groups(self, selectors: tuple[SelectorTerm, ...]) -> tuple[SecurityGroup, ...]:
        """Call DescribeSecurityGroups once per query built from *selectors*; sorted by id."""
        call = "describe_security_groups"
        pages = (
            self._paginate(call, "SecurityGroups", 500, **query) for query in build_security_group_queries(selectors)
        )
        return tuple(sorted({parse_security_group(group) for page in pages for group in page}))

    def describe_images(self, selectors: tuple[SelectorTerm, ...]) -> tuple[Image, ...]:
        """Call DescribeImages once per query built from *selectors*; newest first, then by id."""
        pages = (self._paginate("describe_images", "Images", 1000, **query) for query in build_image_queries(selectors))
        image_by_id = {image.image_id: image for page in pages for image in map(parse_image, page)}
        return tuple(sorted(image_by_id.values(), key=lambda image: (-image.created_at.timestamp(), image.image_id)))

    def describe_capacity_reservations(
        self, selectors: tuple[SelectorTerm, ...], *, are_scheduled_included: bool = False
    ) -> tuple[CapacityReservation, ...]:
        """Call DescribeCapacityReservations for active ones, once per query built from *selectors*; sorted by id.

        With *are_scheduled_included*, those that start later are returned as well. EC2 rejects a list of ids if one
        reservation does not exist: such a list is halved until only the missing reservations are left out.
        """
        states = ("active", "scheduled") if are_scheduled_included else ("active",)
        pages = map(self._describe_reservations, build_reservation_queries(selectors, states))
        now = self._clock()
        reservation_by_id = {
            reservation.reservation_id: reservation for page in pages for reservation in map(parse_reservation, page)
        }
        return tuple(
            reservation_by_id[name]
            for name in sorted(reservation_by_id)
            if (end := reservation_by_id[name].ends_at) is None or end > now
        )

    def describe_other_instances(self, cluster: str) -> tuple[Instance, ...]:
        """Call DescribeInstances for all Linux instances with default tenancy; those of *cluster* are left out."""
        filters = _build_filters(
            ("instance-state-name", ["pending", "running"]),
            ("platform-details", ["Linux/UNIX"]),
            ("tenancy", ["default"]),
        )
        reservations = self._paginate("describe_instances", "Reservations", 1000, Filters=filters)
        instances = (parse_instance(instance) for reservation in reservations for instance in reservation["Instances"])
        other_instances = (instance for instance in instances if not _is_owned(instance, cluster))
        return tuple(sorted(other_instances, key=lambda instance: instance.instance_id))

    def describe_reserved_instances(self) -> tuple[ReservedInstances, ...]:
        """Call DescribeReservedInstances."""
        return describe_reserved_instances(self._clients)

    def describe_placement_group(self, selector: SelectorTerm) -> PlacementGroup | None:
        """Call DescribePlacementGroups by id or name for an available group; the response has no pages."""
        id_or_name = {"GroupIds": [selector.id]} if selector.id else {"GroupNames": [selector.name]}
        try:
            with translate_errors(f"ec2:DescribePlacementGroups {selector.id or selector.name}"):
                response = self._clients.get_retrying_client("ec2").describe_placement_groups(
                    Filters=_build_filters(("state", ["available"])), **id_or_name
                )
        except NotFound:
            return None
        except Invalid as fault:
            if "PlacementGroup.Unknown" in fault.code:
                return None
            raise
        return next(map(parse_placement_group, response["PlacementGroups"]), None)

    def dry_run_launch(self, probe: DryRunRequest) -> tuple[DryRunRefusal, ...]:
        """Call CreateLaunchTemplate, RunInstances and CreateFleet with DryRun, one attempt each."""
        return call_dry_runs(self._clients, probe)

    def _list_instances(self, *names_and_values: tuple[str, list[str]]) -> tuple[Instance, ...]:
        filters = _build_filters(*names_and_values, ("instance-state-name", _LIVE_STATES))
        reservations = self._paginate("describe_instances", "Reservations", 1000, Filters=filters)
        instances = (parse_instance(instance) for reservation in reservations for instance in reservation["Instances"])
        return tuple(sorted(instances, key=lambda instance: instance.instance_id))

    def _paginate(self, call: str, key: str, page_size: int | None, **query: Any) -> Iterator[Any]:  # noqa: ANN401 - boto3's
        """Yield the items of all pages; without *page_size* none is sent, as EC2 requires next to a list of ids."""
        with translate_errors(f"ec2:{call}"):
            pages = self._clients.get_retrying_client("ec2").get_paginator(call)
            for page in pages.paginate(PaginationConfig={"PageSize": page_size}, **query):
                yield from page[key]

    def _describe_reservations(self, query: DescribeQuery) -> list[Any]:
        call, key = "describe_capacity_reservations", "CapacityReservations"
        ids = query.get(RESERVATION_IDS, [])
        page_size = None if ids else 1000
        try:
            return list(self._paginate(call, key, page_size, **query))
        except NotFound:
            middle = len(ids) // 2
            halves = [half for half in (ids[:middle], ids[middle:]) if half and len(ids) > 1]
            return [item for half in halves for item in self._describe_reservations({**query, RESERVATION_IDS: half})]

    def _terminate_batch(self, ids: list[str]) -> None:
        try:
            with translate_errors(f"ec2:TerminateInstances {', '.join(ids)}"):
                self._clients.get_retrying_client("ec2").terminate_instances(InstanceIds=ids)
        except NotFound:
            if len(ids) > 1:
                self._terminate_batch(ids[: len(ids) // 2])
                self._terminate_batch(ids[len(ids) // 2 :])


def _build_filters(*names_and_values: tuple[str, list[str]]) -> list[dict[str, Any]]:
    return [{"Name": name, "Values": values} for name, values in names_and_values]


def _is_owned(instance: Instance, cluster: str) -> bool:
    tags = dict(instance.tags)
    return tags.get(CLUSTER_TAG) == cluster and all(key in tags for key in _REQUIRED_TAG_KEYS)
