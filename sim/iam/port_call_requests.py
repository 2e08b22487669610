"""The IAM requests of a port call: one for every action on every resource that the service checks."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from shared.settings_text import WORKSPACE_URL
from sim.iam.ec2_call_requests import Ec2RequestBuilder
from sim.iam.patterns_and_variables import IamRequest

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
EVENT_SOURCE: Final = "joiner"
PUBLIC_PARAMETER_PREFIX: Final = "/aws/service/"


class PortRequestBuilder(Ec2RequestBuilder, frozen=True, kw_only=True):
    """Builds the IAM requests of port calls in one account."""

    def build_requests(
        self, call: str, arguments: tuple[Any, ...], options: Mapping[str, Any]
    ) -> tuple[IamRequest, ...]:
        """Return the IAM requests of *call*, as ``ec2.create_fleet``, with its arguments.

        Raises:
            KeyError: the call is unknown.
        """
        if call in ACTION_BY_READ_CALL:
            return (self.build_request(ACTION_BY_READ_CALL[call], "*"),)
        if call.startswith("ec2."):
            return self.build_write_requests(call, arguments)
        if call.startswith("table."):
            return self._build_table_requests(call, options)
        builder_by_call: dict[str, Callable[[Any], tuple[IamRequest, ...]]] = {
            "eks.describe_cluster": lambda argument: (
                self.build_request("eks:DescribeCluster", self.build_arn("eks", f"cluster/{argument}")),
            ),
            "mailbox.add": lambda argument: (self.build_request("sqs:SendMessage", self._build_queue_arn(argument)),),
            "mailbox.add_batch": lambda argument: (
                self.build_request("sqs:SendMessage", self._build_queue_arn(argument)),
            ),
            "parameters.get_parameter": self._build_parameter_requests,
            "savings_plans.describe_savings_plans": self._build_savings_plan_requests,
            "zonal_shifts.get_zonal_shifts": lambda argument: (
                self.build_request(
                    "arc-zonal-shift:GetManagedResource", "*", {"arc-zonal-shift:ResourceIdentifier": argument}
                ),
            ),
            "payer.describe_commitments": lambda _: (self._build_assume_role_request(),),
            "group_table.read": lambda kind: (self._build_group_request("dynamodb:GetItem", kind),),
            "group_table.write": lambda kind: (self._build_group_request("dynamodb:PutItem", kind),),
            "event_bus.put": lambda _: (self._build_put_events_request(),),
            "remote_write.write": lambda _: self._build_remote_write_requests(),
            "topic.publish": lambda _: (self.build_request("sns:Publish", self.settings.report_topic),),
            "bucket.get": lambda argument: (self.build_request("s3:GetObject", f"{self._bucket}/{argument}"),),
            "bucket.list_keys": lambda argument: (
                self.build_request("s3:ListBucket", self._bucket, {"s3:prefix": argument}),
            ),
            "bucket.put": lambda argument: (self.build_request("s3:PutObject", f"{self._bucket}/{argument}"),),
        }
        return builder_by_call[call](arguments[0])

    @property
    def _bucket(self) -> str:
        return f"arn:aws:s3:::{self.settings.bucket_name}"

    def _build_savings_plan_requests(self, region: str) -> tuple[IamRequest, ...]:
        """Return the requests for the list of Savings Plans, and for the rates of each that covers *region*.

        The service has no region in its ARNs; its endpoint is in us-east-1.
        """
        prefix = f"arn:aws:savingsplans::{self.number}:savingsplan/"
        now = self.cloud.clock.get_time()
        rate_arns = [f"{prefix}{plan.plan_id}" for plan in self.cloud.commitments.list_plans(now, region)]
        context_keys = {"aws:RequestedRegion": "us-east-1"}
        return (
            self.build_request("savingsplans:DescribeSavingsPlans", f"{prefix}*", context_keys),
            *(self.build_request("savingsplans:DescribeSavingsPlanRates", arn, context_keys) for arn in rate_arns),
        )

    def _build_assume_role_request(self) -> IamRequest:
        external_id = self.settings.commitments_external_id
        context_keys = {"sts:ExternalId": external_id} if external_id else {}
        return self.build_request("sts:AssumeRole", self.settings.commitments_role, context_keys)

    def _build_put_events_request(self) -> IamRequest:
        bus = self.settings.event_bus
        arn = bus if bus.startswith("arn:") else self.build_arn("events", f"event-bus/{bus}")
        return self.build_request("events:PutEvents", arn, {"events:source": (EVENT_SOURCE,)})

    def _build_remote_write_requests(self) -> tuple[IamRequest, ...]:
        """Return the request for a workspace of Amazon Managed Service for Prometheus; other receivers know no IAM."""
        workspace = WORKSPACE_URL.fullmatch(self.settings.remote_write_url)
        if workspace is None:
            return ()
        arn = f"arn:aws:aps:{workspace['region']}:{self.number}:workspace/{workspace['workspace']}"
        return (self.build_request("aps:RemoteWrite", arn, {"aws:RequestedRegion": workspace["region"]}),)

    def _build_queue_arn(self, function: str) -> str:
        """Return the ARN of the queue of *function*; its URL is the queue prefix and *function*."""
        return self.build_arn("sqs", f"{self.settings.queue_prefix}{function}".rpartition("/")[2])

    def _build_table_requests(self, call: str, options: Mapping[str, Any]) -> tuple[IamRequest, ...]:
        condition_check = ("dynamodb:ConditionCheckItem",) if options.get("fence") is not None else ()
        actions = ACTIONS_BY_TABLE_CALL.get(call, ("dynamodb:PutItem", *condition_check))
        table = self.build_arn("dynamodb", f"table/{self.settings.table_name}")
        return tuple(self.build_request(action, table) for action in actions)

    def _build_group_request(self, action: str, kind: str) -> IamRequest:
        """Return the request for the table of the group; the kind of a row is its partition key."""
        table = self.settings.group_table
        context_keys = {"aws:RequestedRegion": table.split(":")[3], "dynamodb:LeadingKeys": (kind,)}
        return self.build_request(action, table, context_keys)

    def _build_parameter_requests(self, name: str) -> tuple[IamRequest, ...]:
        account = "" if name.startswith(PUBLIC_PARAMETER_PREFIX) else self.number
        arn = f"arn:aws:ssm:{self.settings.region}:{account}:parameter/{name.lstrip('/')}"
        return (self.build_request("ssm:GetParameter", arn),)
