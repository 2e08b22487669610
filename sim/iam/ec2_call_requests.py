"""The IAM requests of EC2 calls: one for every action on every resource that EC2 checks.

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
LAUNCHED_RESOURCE_TYPES: Final = ("instance", "volume", "network-interface")
"""The resources that a launch creates and tags; a Spot launch also creates a Spot Instance request."""


class Ec2RequestBuilder(msgspec.Struct, frozen=True, kw_only=True):
    """Builds the IAM requests of calls of EC2 in one account."""

    cloud: Cloud
    settings: Settings
    number: str
    get_role_arn: Callable[[str], str]
    """Returns the ARN of the role in an instance profile."""

    def build_write_requests(self, call: str, arguments: tuple[Any, ...]) -> tuple[IamRequest, ...]:
        """Return the IAM requests of *call* with its arguments, like ``ec2.create_fleet``.

        Raises:
            KeyError: the call is unknown.
        """
        builder_by_call: dict[str, Callable[[Any], tuple[IamRequest, ...]]] = {
            "ec2.create_fleet": self._build_fleet_requests,
            "ec2.create_tags": lambda argument: self._build_tag_requests(argument, arguments[1]),
            "ec2.delete_launch_template": self._build_delete_template_requests,
            "ec2.ensure_launch_template": self._build_ensure_template_requests,
            "ec2.dry_run_launch": self._build_probe_requests,
            "ec2.terminate_instances": self._build_terminate_requests,
        }
        return builder_by_call[call](arguments[0])

    def build_ec2_arn(self, resource_type: str, name: str = "*", *, account: str | None = None) -> str:
        """Return the ARN of an EC2 resource; without *name*, of a resource that is not created yet."""
        return (
            f"arn:aws:ec2:{self.settings.region}:{self.number if account is None else account}:{resource_type}/{name}"
        )

    def build_request(
        self, action: str, resource: str, context_keys: Mapping[str, str | Iterable[str]] | None = None
    ) -> IamRequest:
        """Return the request for *action* on the ARN *resource*, with the condition keys of every request."""
        global_keys = {"aws:RequestedRegion": self.settings.region, "aws:SecureTransport": "true"}
        return IamRequest(
            action=action, resource=resource, context=build_context(global_keys | dict(context_keys or {}))
        )

    def build_arn(self, service: str, name: str) -> str:
        """Return the ARN of a resource of *service* in the account and region."""
        return f"arn:aws:{service}:{self.settings.region}:{self.number}:{name}"

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
            requests.append(self.build_request(action, arn, build_resource_tag_keys(tags) | call_keys))
        if self.cloud.instances.open_answers.denies_unseen_instances:
            try:
                self.cloud.instances.describe(instance_id)
            except NotFound:
                unseen_request = self.build_request(action, arn, call_keys)
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
        return self.build_request(action, arn, build_resource_tag_keys(self.cloud.templates.find(name).tags))

    def _build_ensure_template_requests(self, template: LaunchTemplate) -> tuple[IamRequest, ...]:
        return (
            self.build_request("ec2:DescribeLaunchTemplates", "*"),
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
        create_request = self.build_request(action, arn, context_keys)
        tag_requests = [
            self.build_request("ec2:CreateTags", arn, context_keys | {"ec2:CreateAction": create_action})
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
        requests = [self.build_request(action, arn) for action in LAUNCH_ACTIONS for arn in arns]
        if template.instance_profile:
            requests.append(self._build_pass_role_request(template.instance_profile))
        return requests

    def _build_pass_role_request(self, profile: str) -> IamRequest:
        service_keys = {"iam:PassedToService": "ec2.amazonaws.com"}
        return self.build_request("iam:PassRole", self.get_role_arn(profile), service_keys)

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
