"""The IAM requests of a port call: one for every action on every resource that EC2 checks.

EC2 checks more than the action of the call itself. CreateFleet needs `ec2:CreateFleet` and, for what it launches,
`ec2:RunInstances` on each type of resource that is created or used; tags on created resources need `ec2:CreateTags`; an
instance profile needs `iam:PassRole` on its role. Both values of `ec2:CreateAction` are checked, because EC2 uses
either for an instant fleet.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from shared.errors import NotFound
from shared.model.ec2.dry_run import DryRunRequest
from shared.model.ec2.fleet import FleetRequest
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import Tags
from shared.settings import Settings
from sim.cloud.cloud import Cloud
from sim.iam.patterns_and_variables import IamRequest, build_context
from sim.iam.tag_condition_keys import build_request_tag_keys, build_resource_tag_keys

LAUNCH_ACTIONS: Final = ("ec2:CreateFleet", "ec2:RunInstances")
"""The actions that a fleet needs on all resources that it creates or uses.

The Service Authorization Reference lists these resources for both actions; which of them EC2 checks for an instant
fleet is not documented, so the simulated EC2 checks all.
"""
ACTION_BY_READ_CALL: Final = {
    "ec2.describe_capacity_reservations": "ec2:DescribeCapacityReservations",
    "ec2.describe_instance": "ec2:DescribeInstances",
    "ec2.describe_instances": "ec2:DescribeInstances",
    "ec2.describe_launch_group": "ec2:DescribeInstances",
    "ec2.describe_images": "ec2:DescribeImages",
    "ec2.describe_instance_statuses": "ec2:DescribeInstanceStatus",
    "ec2.describe_instance_types": "ec2:DescribeInstanceTypes",
    "ec2.describe_launch_templates": "ec2:DescribeLaunchTemplates",
    "ec2.describe_other_instances": "ec2:DescribeInstances",
    "ec2.describe_reserved_instances": "ec2:DescribeReservedInstances",
    "ec2.describe_offerings": "ec2:DescribeInstanceTypeOfferings",
    "ec2.describe_placement_group": "ec2:DescribePlacementGroups",
    "ec2.describe_security_groups": "ec2:DescribeSecurityGroups",
    "ec2.describe_spot_prices": "ec2:DescribeSpotPriceHistory",
    "ec2.describe_subnets": "ec2:DescribeSubnets",
    "prices.get_on_demand_prices": "pricing:GetProducts",
}
"""Calls without resource-level permissions."""
ACTIONS_BY_TABLE_CALL: Final = {
    "table.read": ("dynamodb:GetItem",),
    "table.remove": ("dynamodb:DeleteItem",),
    "table.list_rows": ("dynamodb:Query",),
}
PUBLIC_PARAMETER_PREFIX: Final = "/aws/service/"
LAUNCHED_RESOURCE_TYPES: Final = ("instance", "volume", "network-interface")
"""The resources that a launch creates and tags; a Spot launch also creates a Spot Instance request."""


class PortRequestBuilder(msgspec.Struct, frozen=True, kw_only=True):
    """Builds the IAM requests of port calls in one account."""

    cloud: Cloud
    settings: Settings
    number: str
    get_role_arn: Callable[[str], str]
    """Returns the ARN of the role in an instance profile."""

    def build_ec2_arn(self, resource_type: str, name: str = "*", *, account: str | None = None) -> str:
        """Return the ARN of an EC2 resource; without *name*, of a resource that is not created yet."""
        return (
            f"arn:aws:ec2:{self.settings.region}:{self.number if account is None else account}:{resource_type}/{name}"
        )

    def build_requests(
        self, call: str, arguments: tuple[Any, ...], options: Mapping[str, Any]
    ) -> tuple[IamRequest, ...]:
        """Return the IAM requests of *call*, as ``ec2.create_fleet``, with its arguments.

        Raises:
            KeyError: the call is unknown.
        """
        if call in ACTION_BY_READ_CALL:
            return (self._build_request(ACTION_BY_READ_CALL[call], "*"),)
        if call.startswith("table."):
            return self._build_table_requests(call, options)
        builder_by_call: dict[str, Callable[[Any], tuple[IamRequest, ...]]] = {
            "ec2.create_fleet": self._build_fleet_requests,
            "ec2.create_tags": lambda argument: self._build_tag_requests(argument, arguments[1]),
            "ec2.delete_launch_template": self._build_delete_template_requests,
            "ec2.ensure_launch_template": self._build_ensure_template_requests,
            "ec2.dry_run_launch": self._build_probe_requests,
            "ec2.terminate_instances": self._build_terminate_requests,
            "eks.describe_cluster": lambda argument: (
                self._build_request("eks:DescribeCluster", self._build_arn("eks", f"cluster/{argument}")),
            ),
            "mailbox.add": lambda argument: (self._build_request("sqs:SendMessage", self._build_queue_arn(argument)),),
            "mailbox.add_batch": lambda argument: (
                self._build_request("sqs:SendMessage", self._build_queue_arn(argument)),
            ),
            "parameters.get_parameter": self._build_parameter_requests,
            "savings_plans.describe_savings_plans": self._build_savings_plan_requests,
            "zonal_shifts.get_zonal_shifts": lambda argument: (
                self._build_request(
                    "arc-zonal-shift:GetManagedResource", "*", {"arc-zonal-shift:ResourceIdentifier": argument}
                ),
            ),
            "payer.describe_commitments": lambda _: (self._build_assume_role_request(),),
            "group_table.read": lambda kind: (self._build_group_request("dynamodb:GetItem", kind),),
            "group_table.write": lambda kind: (self._build_group_request("dynamodb:PutItem", kind),),
            "topic.publish": lambda _: (self._build_request("sns:Publish", self.settings.report_topic),),
            "bucket.get": lambda argument: (self._build_request("s3:GetObject", f"{self._bucket}/{argument}"),),
            "bucket.list_keys": lambda argument: (
                self._build_request("s3:ListBucket", self._bucket, {"s3:prefix": argument}),
            ),
            "bucket.put": lambda argument: (self._build_request("s3:PutObject", f"{self._bucket}/{argument}"),),
        }
        return builder_by_call[call](arguments[0])

    @property
    def _bucket(self) -> str:
        return f"arn:aws:s3:::{self.settings.bucket_name}"

    def _build_arn(self, service: str, name: str) -> str:
        return f"arn:aws:{service}:{self.settings.region}:{self.number}:{name}"

    def _build_savings_plan_requests(self, region: str) -> tuple[IamRequest, ...]:
        """Return the requests for the list of Savings Plans, and for the rates of each that covers *region*.

        The service has no region in its ARNs; its endpoint is in us-east-1.
        """
        prefix = f"arn:aws:savingsplans::{self.number}:savingsplan/"
        now = self.cloud.clock.get_time()
        rate_arns = [f"{prefix}{plan.plan_id}" for plan in self.cloud.commitments.list_plans(now, region)]
        context_keys = {"aws:RequestedRegion": "us-east-1"}
        return (
            self._build_request("savingsplans:DescribeSavingsPlans", f"{prefix}*", context_keys),
            *(self._build_request("savingsplans:DescribeSavingsPlanRates", arn, context_keys) for arn in rate_arns),
        )

    def _build_assume_role_request(self) -> IamRequest:
        external_id = self.settings.commitments_external_id
        context_keys = {"sts:ExternalId": external_id} if external_id else {}
        return self._build_request("sts:AssumeRole", self.settings.commitments_role, context_keys)

    def _build_queue_arn(self, function: str) -> str:
        """Return the ARN of the queue of *function*; its URL is the queue prefix and *function*."""
        return self._build_arn("sqs", f"{self.settings.queue_prefix}{function}".rpartition("/")[2])

    def _build_request(
        self, action: str, resource: str, context_keys: Mapping[str, str | Iterable[str]] | None = None
    ) -> IamRequest:
        global_keys = {"aws:RequestedRegion": self.settings.region, "aws:SecureTransport": "true"}
        return IamRequest(
            action=action, resource=resource, context=build_context(global_keys | dict(context_keys or {}))
        )

    def _build_table_requests(self, call: str, options: Mapping[str, Any]) -> tuple[IamRequest, ...]:
        condition_check = ("dynamodb:ConditionCheckItem",) if options.get("fence") is not None else ()
        actions = ACTIONS_BY_TABLE_CALL.get(call, ("dynamodb:PutItem", *condition_check))
        table = self._build_arn("dynamodb", f"table/{self.settings.table_name}")
        return tuple(self._build_request(action, table) for action in actions)

    def _build_group_request(self, action: str, kind: str) -> IamRequest:
        """Return the request for the table of the group; the kind of a row is its partition key."""
        table = self.settings.group_table
        context_keys = {"aws:RequestedRegion": table.split(":")[3], "dynamodb:LeadingKeys": (kind,)}
        return self._build_request(action, table, context_keys)

    def _build_parameter_requests(self, name: str) -> tuple[IamRequest, ...]:
        account = "" if name.startswith(PUBLIC_PARAMETER_PREFIX) else self.number
        arn = f"arn:aws:ssm:{self.settings.region}:{account}:parameter/{name.lstrip('/')}"
        return (self._build_request("ssm:GetParameter", arn),)

    def _build_terminate_requests(self, instance_ids: Iterable[str]) -> tuple[IamRequest, ...]:
        return tuple(
            request
            for instance_id in instance_ids
            for request in self._build_instance_requests("ec2:TerminateInstances", instance_id)
        )

    def _build_instance_requests(
        self, action: str, instance_id: str, context_keys: Mapping[str, str | Iterable[str]] | None = None
    ) -> tuple[IamRequest, ...]:
        """Return the request for an existing instance, with its tags, and one without tags if EC2 does not show it.

        The second one depends on the open answers: without it, the call itself answers NotFound.
        """
        arn, call_keys = self.build_ec2_arn("instance", instance_id), dict(context_keys or {})
        requests = []
        with suppress(NotFound):
            tags = tuple(self.cloud.instances.find(instance_id).tags.items())
            requests.append(self._build_request(action, arn, build_resource_tag_keys(tags) | call_keys))
        if self.cloud.instances.open_answers.denies_unseen_instances:
            try:
                self.cloud.instances.describe(instance_id)
            except NotFound:
                unseen_request = self._build_request(action, arn, call_keys)
                requests.append(msgspec.structs.replace(unseen_request, is_found=False))
        return tuple(requests)

    def _build_tag_requests(self, instance_id: str, tags: Tags) -> tuple[IamRequest, ...]:
        return self._build_instance_requests("ec2:CreateTags", instance_id, build_request_tag_keys(tags))

    def _build_delete_template_requests(self, name: str) -> tuple[IamRequest, ...]:
        """Return the request to delete a launch template; a name without a template has no ARN that IAM can check."""
        try:
            return (self._build_template_request("ec2:DeleteLaunchTemplate", name),)
        except NotFound:
            return ()

    def _build_template_request(self, action: str, name: str) -> IamRequest:
        arn = self.build_ec2_arn("launch-template", self.cloud.templates.build_template_id(name))
        return self._build_request(action, arn, build_resource_tag_keys(self.cloud.templates.find(name).tags))

    def _build_ensure_template_requests(self, template: LaunchTemplate) -> tuple[IamRequest, ...]:
        return (
            self._build_request("ec2:DescribeLaunchTemplates", "*"),
            *self._build_create_template_requests(template),
        )

    def _build_create_template_requests(self, template: LaunchTemplate) -> tuple[IamRequest, ...]:
        return self._build_create_requests(
            "ec2:CreateLaunchTemplate", "launch-template", template.tags, ("CreateLaunchTemplate",)
        )

    def _build_create_requests(
        self, action: str, resource_type: str, tags: Tags, create_actions: tuple[str, ...]
    ) -> tuple[IamRequest, ...]:
        """Return the requests to create a resource of type *resource_type* with *tags*."""
        context_keys, arn = build_request_tag_keys(tags), self.build_ec2_arn(resource_type)
        create_request = self._build_request(action, arn, context_keys)
        tag_requests = [
            self._build_request("ec2:CreateTags", arn, context_keys | {"ec2:CreateAction": create_action})
            for create_action in create_actions
            if tags
        ]
        return create_request, *tag_requests

    def _build_fleet_requests(self, request: FleetRequest) -> tuple[IamRequest, ...]:
        requests = [*self._build_create_requests("ec2:CreateFleet", "fleet", request.tags, ("CreateFleet",))]
        for config in request.configs:
            name = config.launch_template_name
            try:
                template = self.cloud.templates.find(name)
            except NotFound:
                continue
            requests += [self._build_template_request(action, name) for action in LAUNCH_ACTIONS]
            images = {override.image_id or template.image_id for override in config.overrides}
            requests += self._build_usage_requests(
                template, images, {override.subnet_id for override in config.overrides}
            )
            requests += self._build_launch_requests(request.tags, template)
        return tuple(requests)

    def _build_launch_requests(self, tags: Tags, template: LaunchTemplate) -> list[IamRequest]:
        spot_types = ("spot-instances-request",) if template.capacity_type == "spot" else ()
        create_actions = ("CreateFleet", "RunInstances")
        tags_by_type = [
            (resource_type, tags if resource_type in ("instance", "volume") else template.tags)
            for resource_type in (*LAUNCHED_RESOURCE_TYPES, *spot_types)
        ]
        return [
            request
            for resource_type, resource_tags in tags_by_type
            for action in LAUNCH_ACTIONS
            for request in self._build_create_requests(action, resource_type, resource_tags, create_actions)
        ]

    def _build_usage_requests(self, template: LaunchTemplate, images: set[str], subnets: set[str]) -> list[IamRequest]:
        snapshots = {device.snapshot_id for device in template.block_devices} - {""}
        own_resources = (
            ("subnet", subnets),
            ("security-group", set(template.security_group_ids)),
            ("placement-group", {template.placement_group_id} - {""}),
            ("capacity-reservation", {template.reservation_id} - {""}),
        )
        arns = [self.build_ec2_arn("image", image_id, account="") for image_id in sorted(images)]
        arns += [self.build_ec2_arn("snapshot", snapshot_id, account="") for snapshot_id in sorted(snapshots)]
        arns += [self.build_ec2_arn(kind, name) for kind, names in own_resources for name in sorted(names)]
        requests = [self._build_request(action, arn) for action in LAUNCH_ACTIONS for arn in arns]
        if template.instance_profile:
            requests.append(self._build_pass_role_request(template.instance_profile))
        return requests

    def _build_pass_role_request(self, profile: str) -> IamRequest:
        service_keys = {"iam:PassedToService": "ec2.amazonaws.com"}
        return self._build_request("iam:PassRole", self.get_role_arn(profile), service_keys)

    def _build_probe_requests(self, probe: DryRunRequest) -> tuple[IamRequest, ...]:
        """Return the requests of a launch whose template is inline, and of a fleet whose template does not exist."""
        template = probe.template
        fleet = self._build_create_requests("ec2:CreateFleet", "fleet", template.tags, ("CreateFleet",))
        used = self._build_usage_requests(template, {template.image_id}, set(probe.subnet_ids))
        return (
            *self._build_create_template_requests(template),
            *fleet,
            *used,
            *self._build_launch_requests(template.tags, template),
        )
