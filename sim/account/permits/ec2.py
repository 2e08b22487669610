"""What IAM is asked for a call to EC2: `sim.iam.calls` knows, once the call is read as our port makes it."""

from collections.abc import Callable, Mapping
from typing import Final

from shared.errors import Gone
from shared.model.ec2 import Probe
from shared.settings import Settings
from sim.cloud.cloud import Cloud
from sim.http.instances import InstanceCalls, tags_for
from sim.http.queries import Wire
from sim.http.templates import run_from, template_from
from sim.iam.calls import Account, request_tags
from sim.iam.values import Request, context

_BY_RUN: Final = frozenset({"ec2:RunInstances", "ec2:CreateTags", "iam:PassRole"})
_KINDS: Final = {
    "lt": "launch-template",
    "sg": "security-group",
    "subnet": "subnet",
    "vol": "volume",
    "vpce": "vpc-endpoint",
}
"""Of what an id begins with."""


class Ec2Permits:
    """The requests behind a call, which touches each of several things."""

    def __init__(self, cloud: Cloud, region: str, number: str, role_of: Callable[[str], str]) -> None:
        """Look for tags in *cloud*; *role_of* answers the ARN of the role in an instance profile."""
        self._cloud, self._calls = cloud, InstanceCalls(cloud)
        settings = Settings(cluster_name=cloud.facts.name, region=region)
        self._account = Account(cloud=cloud, settings=settings, number=number, role_of=role_of)
        self._asks: Mapping[str, Callable[[Wire], tuple[Request, ...]]] = {
            "CreateFleet": self._fleet,
            "CreateLaunchTemplate": self._template,
            "CreateTags": self._tags,
            "DeleteLaunchTemplate": lambda said: self._ask(
                "delete_launch_template", said.get("LaunchTemplateName", "")
            ),
            "RunInstances": self._run,
            "TerminateInstances": lambda said: self._ask("terminate_instances", said["InstanceIds"]),
        }

    def requests(self, action: str, said: Wire) -> tuple[Request, ...]:
        """Answer what is asked for *action*."""
        if action in self._asks:
            return self._asks[action](said)
        region = {"aws:RequestedRegion": self._account.settings.region, "aws:SecureTransport": "true"}
        return (Request(action=f"ec2:{action}", resource="*", context=context(region)),)

    def _ask(self, call: str, *arguments: object) -> tuple[Request, ...]:
        return self._account.requests(f"ec2.{call}", arguments, {})

    def _fleet(self, said: Wire) -> tuple[Request, ...]:
        try:
            return self._ask("create_fleet", self._calls.fleet(said))
        except Gone:
            # Of a template that is not there nothing is asked; with DryRun that is how the right is tried.
            return self._without_template(said)

    def _without_template(self, said: Wire) -> tuple[Request, ...]:
        known = {"aws:RequestedRegion": self._account.settings.region, **request_tags(tags_for("fleet", said))}
        return (Request(action="ec2:CreateFleet", resource=self._account.ec2("fleet"), context=context(known)),)

    def _template(self, said: Wire) -> tuple[Request, ...]:
        asked = self._ask("ensure_launch_template", template_from(said))
        return tuple(one for one in asked if one.action != "ec2:DescribeLaunchTemplates")

    def _run(self, said: Wire) -> tuple[Request, ...]:
        template, instance_type, subnet = run_from(said)
        probe = Probe(template=template, instance_type=instance_type, subnet_ids=(subnet,))
        return tuple(one for one in self._ask("refusals", probe) if one.action in _BY_RUN)

    def _tags(self, said: Wire) -> tuple[Request, ...]:
        tags = tuple((one["Key"], one.get("Value", "")) for one in said["Tags"])
        return tuple(one for resource in said["Resources"] for one in self._tagging(resource, tags))

    def _tagging(self, resource: str, tags: tuple[tuple[str, str], ...]) -> tuple[Request, ...]:
        prefix = resource.partition("-")[0]
        if prefix == "i":
            return self._ask("create_tags", resource, tags)
        arn = self._account.ec2(_KINDS.get(prefix, prefix), resource)
        known = {"aws:RequestedRegion": self._account.settings.region, **request_tags(tags)}
        return (Request(action="ec2:CreateTags", resource=arn, context=context(known)),)
