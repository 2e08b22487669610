"""What IAM is asked when a function calls a port: one request for every action on every resource that EC2 looks at.

EC2 asks for more than the call's own name. A fleet is `ec2:CreateFleet` and, for what it starts, `ec2:RunInstances` on
each kind of thing that is made or used; tags on what is made are `ec2:CreateTags`; a profile is `iam:PassRole` on its
role. Which action made the tagged thing is asked both ways, for EC2 says either of an instant fleet.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from shared.errors import Gone
from shared.model.ec2 import FleetRequest, LaunchTemplate, Probe, Tags
from shared.settings import Settings
from sim.cloud.cloud import Cloud
from sim.iam.values import Request, context

READS: Final = {
    "ec2.capacity_reservations": "ec2:DescribeCapacityReservations",
    "ec2.describe_instance": "ec2:DescribeInstances",
    "ec2.describe_instances": "ec2:DescribeInstances",
    "ec2.images": "ec2:DescribeImages",
    "ec2.instance_statuses": "ec2:DescribeInstanceStatus",
    "ec2.instance_types": "ec2:DescribeInstanceTypes",
    "ec2.launch_templates": "ec2:DescribeLaunchTemplates",
    "ec2.offerings": "ec2:DescribeInstanceTypeOfferings",
    "ec2.placement_group": "ec2:DescribePlacementGroups",
    "ec2.security_groups": "ec2:DescribeSecurityGroups",
    "ec2.spot_prices": "ec2:DescribeSpotPriceHistory",
    "ec2.subnets": "ec2:DescribeSubnets",
    "prices.on_demand": "pricing:GetProducts",
}
"""Calls that know no resources."""
ROWS: Final = {
    "table.read": ("dynamodb:GetItem",),
    "table.remove": ("dynamodb:DeleteItem",),
    "table.rows": ("dynamodb:Query",),
}
PUBLIC_PARAMETERS: Final = "/aws/service/"
STARTED: Final = ("instance", "volume", "network-interface")
"""What a launch makes and tags; a spot request besides."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """Where the calls are made, and what they may meet there."""

    cloud: Cloud
    settings: Settings
    number: str
    role_of: Callable[[str], str]
    """Answers the ARN of the role in an instance profile."""

    def ec2(self, kind: str, name: str = "*", *, account: str | None = None) -> str:
        """Answer the ARN of something in EC2; without *name*: one that is yet to be made."""
        return f"arn:aws:ec2:{self.settings.region}:{self.number if account is None else account}:{kind}/{name}"

    def requests(self, call: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> tuple[Request, ...]:
        """Answer what IAM is asked for *call*, as ``ec2.create_fleet``, before it is made.

        Raises:
            KeyError: the call is unknown here.
        """
        if call in READS:
            return (self._request(READS[call], "*"),)
        if call.startswith("table."):
            return self._rows(call, options)
        asks: dict[str, Callable[[Any], tuple[Request, ...]]] = {
            "ec2.create_fleet": self._fleet,
            "ec2.create_tags": lambda one: (self._tagging(one, arguments[1]),),
            "ec2.delete_launch_template": lambda one: (self._template("ec2:DeleteLaunchTemplate", one),),
            "ec2.ensure_launch_template": self._new_template,
            "ec2.refusals": self._probe,
            "ec2.terminate_instances": self._end,
            "eks.cluster": lambda one: (self._request("eks:DescribeCluster", self._arn("eks", f"cluster/{one}")),),
            "mailbox.send": lambda one: (self._request("sqs:SendMessage", self._queue(one)),),
            "parameters.parameter": self._parameter,
            "topic.publish": lambda _: (self._request("sns:Publish", self.settings.report_topic),),
            "bucket.get": lambda one: (self._request("s3:GetObject", f"{self._bucket}/{one}"),),
            "bucket.keys": lambda one: (self._request("s3:ListBucket", self._bucket, {"s3:prefix": one}),),
            "bucket.put": lambda one: (self._request("s3:PutObject", f"{self._bucket}/{one}"),),
        }
        return asks[call](arguments[0])

    @property
    def _bucket(self) -> str:
        return f"arn:aws:s3:::{self.settings.bucket_name}"

    def _arn(self, service: str, name: str) -> str:
        return f"arn:aws:{service}:{self.settings.region}:{self.number}:{name}"

    def _queue(self, function: str) -> str:
        """Answer the ARN of the queue that the prefix' URL and *function* name."""
        return self._arn("sqs", f"{self.settings.queue_prefix}{function}".rpartition("/")[2])

    def _request(self, action: str, resource: str, known: Mapping[str, str | Iterable[str]] | None = None) -> Request:
        everywhere = {"aws:RequestedRegion": self.settings.region, "aws:SecureTransport": "true"}
        return Request(action=action, resource=resource, context=context(everywhere | dict(known or {})))

    def _rows(self, call: str, options: Mapping[str, Any]) -> tuple[Request, ...]:
        fenced = ("dynamodb:ConditionCheckItem",) if options.get("fence") is not None else ()
        actions = ROWS.get(call, ("dynamodb:PutItem", *fenced))
        table = self._arn("dynamodb", f"table/{self.settings.table_name}")
        return tuple(self._request(action, table) for action in actions)

    def _parameter(self, name: str) -> tuple[Request, ...]:
        account = "" if name.startswith(PUBLIC_PARAMETERS) else self.number
        arn = f"arn:aws:ssm:{self.settings.region}:{account}:parameter/{name.lstrip('/')}"
        return (self._request("ssm:GetParameter", arn),)

    def _end(self, instance_ids: Iterable[str]) -> tuple[Request, ...]:
        return tuple(self._instance("ec2:TerminateInstances", one) for one in instance_ids)

    def _instance(
        self, action: str, instance_id: str, known: Mapping[str, str | Iterable[str]] | None = None
    ) -> Request:
        try:
            tags = self.cloud.instance(instance_id).tags
        except Gone:
            tags = ()
        return self._request(action, self.ec2("instance", instance_id), resource_tags(tags) | dict(known or {}))

    def _tagging(self, instance_id: str, tags: Tags) -> Request:
        return self._instance("ec2:CreateTags", instance_id, request_tags(tags))

    def _template(self, action: str, name: str) -> Request:
        template_id = self.cloud.templates.template_id(name)
        try:
            tags = self.cloud.templates.find(name).tags
        except Gone:
            tags = ()
        return self._request(action, self.ec2("launch-template", template_id), resource_tags(tags))

    def _new_template(self, template: LaunchTemplate) -> tuple[Request, ...]:
        return (self._request("ec2:DescribeLaunchTemplates", "*"), *self._made_template(template))

    def _made_template(self, template: LaunchTemplate) -> tuple[Request, ...]:
        return self._made("ec2:CreateLaunchTemplate", "launch-template", template.tags, ("CreateLaunchTemplate",))

    def _made(self, action: str, kind: str, tags: Tags, by: tuple[str, ...]) -> tuple[Request, ...]:
        """Answer what is asked for making one of *kind* with *tags*."""
        known, arn = request_tags(tags), self.ec2(kind)
        making = self._request(action, arn, known)
        tagging = [self._request("ec2:CreateTags", arn, known | {"ec2:CreateAction": each}) for each in by if tags]
        return making, *tagging

    def _fleet(self, request: FleetRequest) -> tuple[Request, ...]:
        found = [*self._made("ec2:CreateFleet", "fleet", request.tags, ("CreateFleet",))]
        for config in request.configs:
            name = config.launch_template_name
            template = self.cloud.templates.find(name)
            found += [self._template(action, name) for action in ("ec2:CreateFleet", "ec2:RunInstances")]
            images = {one.image_id or template.image_id for one in config.overrides}
            found += self._used(template, images, {one.subnet_id for one in config.overrides})
            found += self._started(request.tags, template)
        return tuple(found)

    def _started(self, tags: Tags, template: LaunchTemplate) -> list[Request]:
        spot = ("spot-instances-request",) if template.capacity_type == "spot" else ()
        by = ("CreateFleet", "RunInstances")
        made = [(kind, tags if kind in ("instance", "volume") else template.tags) for kind in (*STARTED, *spot)]
        return [each for kind, its in made for each in self._made("ec2:RunInstances", kind, its, by)]

    def _used(self, template: LaunchTemplate, images: set[str], subnets: set[str]) -> list[Request]:
        snapshots = {device.snapshot_id for device in template.block_devices} - {""}
        arns = [
            *(self.ec2("image", one, account="") for one in sorted(images)),
            *(self.ec2("snapshot", one, account="") for one in sorted(snapshots)),
            *(self.ec2("subnet", one) for one in sorted(subnets)),
            *(self.ec2("security-group", one) for one in sorted(template.security_group_ids)),
            *(self.ec2("placement-group", one) for one in (template.placement_group_id,) if one),
            *(self.ec2("capacity-reservation", one) for one in (template.reservation_id,) if one),
        ]
        launched = [self._request("ec2:RunInstances", arn) for arn in arns]
        return launched + ([self._passed(template.instance_profile)] if template.instance_profile else [])

    def _passed(self, profile: str) -> Request:
        return self._request("iam:PassRole", self.role_of(profile), {"iam:PassedToService": "ec2.amazonaws.com"})

    def _probe(self, probe: Probe) -> tuple[Request, ...]:
        """Answer what a launch would ask whose template is said inline, and a fleet whose template is not there."""
        template = probe.template
        fleet = self._made("ec2:CreateFleet", "fleet", template.tags, ("CreateFleet",))
        used = self._used(template, {template.image_id}, set(probe.subnet_ids))
        return (*self._made_template(template), *fleet, *used, *self._started(template.tags, template))


def request_tags(tags: Tags) -> dict[str, str | Iterable[str]]:
    """Answer the condition keys of tags that are being written."""
    return {f"aws:RequestTag/{key}": value for key, value in tags} | {"aws:TagKeys": tuple(key for key, _ in tags)}


def resource_tags(tags: Tags) -> dict[str, str | Iterable[str]]:
    """Answer the condition keys of tags that are there."""
    return {f"{name}:ResourceTag/{key}": value for name in ("aws", "ec2") for key, value in tags}
