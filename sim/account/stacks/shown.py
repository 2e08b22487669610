"""What CloudFormation tells of stacks, and how they are found."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from sim.account.kinds.kind import Services
from sim.account.stacks.stack import ChangeSet, Stack
from sim.account.stacks.template import InvalidTemplate, parse_template
from sim.http.protocol import ApiError
from sim.http.queries import Wire

Answer: TypeAlias = dict[str, Any]

_PAGE: Final = 100
_IN_BUCKET: Final = re.compile(r"https?://(?:(?P<host>[^/]+)\.s3[.-][^/]+|[^/]+/(?P<path>[^/]+))/(?P<key>.+)")


class Stacks:
    """All stacks of the account, those that are gone too."""

    def __init__(self, services: Services) -> None:
        """Begin without any."""
        self._services = services
        self.stacks: list[Stack] = []
        self.handlers: Mapping[str, Callable[[Wire], Answer]] = {
            "DescribeChangeSet": self._describe_change_set,
            "DescribeEvents": lambda _: {"OperationEvents": []},
            "DescribeStackEvents": self._describe_events,
            "DescribeStackResource": self._describe_resource,
            "DescribeStackResources": self._describe_resources,
            "DescribeStacks": self._describe_stacks,
            "GetTemplate": self._get_template,
            "GetTemplateSummary": self._summary,
            "ListExports": self._list_exports,
            "ListStackResources": self._list_resources,
            "ListStacks": self._list_stacks,
            "ValidateTemplate": self._summary,
        }

    def stack(self, name: str) -> Stack:
        """Answer the stack with that name or ARN.

        Raises:
            ApiError: there is none.
        """
        for one in reversed(self.stacks):
            if name == one.arn or (name == one.name and not one.is_gone):
                return one
        raise ApiError("ValidationError", f"Stack with id {name} does not exist")

    def exported(self, name: str) -> str:
        """Answer what some stack exports as *name*.

        Raises:
            InvalidTemplate: none does.
        """
        for one in self.stacks:
            for output in one.outputs:
                if output.get("ExportName") == name and not one.is_gone:
                    return output["OutputValue"]
        raise InvalidTemplate(f"No export named {name} found.")

    def text(self, said: Wire) -> str:
        """Answer the template that a call brings, or says the place of.

        Raises:
            ApiError: the place is none.
        """
        if "TemplateURL" not in said:
            return str(said["TemplateBody"])
        found = _IN_BUCKET.fullmatch(said["TemplateURL"])
        if found is None:
            raise ApiError("ValidationError", "TemplateURL must be a supported URL.")
        bucket = found["path"] or found["host"]
        return str(self._services.client("s3").get_object(Bucket=bucket, Key=found["key"])["Body"].read().decode())

    def change_set(self, said: Wire) -> tuple[Stack, ChangeSet]:
        """Answer the change set that *said* names, and its stack.

        Raises:
            ApiError: there is none.
        """
        name = said["ChangeSetName"]
        stacks = [self.stack(said["StackName"])] if "StackName" in said else self.stacks
        for stack in stacks:
            for one in stack.change_sets.values():
                if name in (one.name, one.arn):
                    return stack, one
        raise ApiError("ChangeSetNotFound", f"ChangeSet [{name}] does not exist", 404)

    def _describe_change_set(self, said: Wire) -> Answer:
        stack, one = self.change_set(said)
        return {
            "ChangeSetName": one.name,
            "ChangeSetId": one.arn,
            "StackId": stack.arn,
            "StackName": stack.name,
            "Parameters": _parameters(one.given),
            "CreationTime": one.at,
            "ExecutionStatus": one.execution,
            "Status": one.status,
            "Capabilities": [],
            "Tags": one.tags,
            "Changes": one.changes,
        } | ({"StatusReason": one.reason} if one.reason else {})

    def _describe_stacks(self, said: Wire) -> Answer:
        if "StackName" in said:
            return {"Stacks": [_stack(self.stack(said["StackName"]))]}
        return {"Stacks": [_stack(one) for one in self.stacks if not one.is_gone]}

    def _describe_events(self, said: Wire) -> Answer:
        stack = self.stack(said["StackName"])
        last = int(said.get("NextToken") or len(stack.events))
        found = stack.events[:last]
        more = {"NextToken": str(len(found) - _PAGE)} if len(found) > _PAGE else {}
        return {
            "StackEvents": [
                {
                    "StackId": stack.arn,
                    "StackName": stack.name,
                    "EventId": f"{one.logical_id}-{one.ordinal}",
                    "LogicalResourceId": one.logical_id,
                    "PhysicalResourceId": one.physical_id,
                    "ResourceType": one.type,
                    "Timestamp": one.at,
                    "ResourceStatus": one.status,
                }
                | ({"ResourceStatusReason": one.reason} if one.reason else {})
                | ({"ClientRequestToken": one.token} if one.token else {})
                for one in reversed(found[-_PAGE:])
            ],
            **more,
        }

    def _describe_resources(self, said: Wire) -> Answer:
        if "StackName" not in said:
            wanted = said["PhysicalResourceId"]
            owners = [
                stack
                for stack in self.stacks
                if any(one.made.physical_id == wanted for one in [*stack.resources.values()])
            ]
            if not owners:
                raise ApiError("ValidationError", f"Stack for {wanted} does not exist")
            stack = owners[-1]
        else:
            stack = self.stack(said["StackName"])
        return {
            "StackResources": [
                one | {"StackId": stack.arn, "StackName": stack.name, "Timestamp": one["LastUpdatedTimestamp"]}
                for one in _resources(stack)
                if said.get("LogicalResourceId") in (None, one["LogicalResourceId"])
            ]
        }

    def _describe_resource(self, said: Wire) -> Answer:
        stack, name = self.stack(said["StackName"]), said["LogicalResourceId"]
        found = [one for one in _resources(stack) if one["LogicalResourceId"] == name]
        if not found:
            raise ApiError("ValidationError", f"Resource {name} does not exist for stack {stack.name}")
        return {"StackResourceDetail": found[0] | {"StackId": stack.arn, "StackName": stack.name}}

    def _list_resources(self, said: Wire) -> Answer:
        return {"StackResourceSummaries": _resources(self.stack(said["StackName"]))}

    def _list_stacks(self, said: Wire) -> Answer:
        wanted = said.get("StackStatusFilter", ())
        return {
            "StackSummaries": [
                {
                    "StackId": one.arn,
                    "StackName": one.name,
                    "CreationTime": one.created_at,
                    "StackStatus": one.status,
                }
                for one in self.stacks
                if not wanted or one.status in wanted
            ]
        }

    def _list_exports(self, said: Wire) -> Answer:
        del said
        return {
            "Exports": [
                {"ExportingStackId": one.arn, "Name": output["ExportName"], "Value": output["OutputValue"]}
                for one in self.stacks
                for output in one.outputs
                if "ExportName" in output and not one.is_gone
            ]
        }

    def _get_template(self, said: Wire) -> Answer:
        if "ChangeSetName" in said:
            return {"TemplateBody": self.change_set(said)[1].text}
        return {"TemplateBody": self.stack(said["StackName"]).text, "StagesAvailable": ["Original", "Processed"]}

    def _summary(self, said: Wire) -> Answer:
        has_text = "TemplateBody" in said or "TemplateURL" in said
        template = parse_template(self.text(said)) if has_text else self.stack(said["StackName"]).template
        parameters = template.get("Parameters", {})
        return {
            "Description": template.get("Description", ""),
            "Parameters": [
                {"ParameterKey": name, "ParameterType": one["Type"], "NoEcho": False}
                | ({"DefaultValue": str(one["Default"])} if "Default" in one else {})
                for name, one in parameters.items()
            ],
            "ResourceTypes": sorted({one["Type"] for one in template["Resources"].values()}),
        }


def _stack(one: Stack) -> Answer:
    found: Answer = {
        "StackId": one.arn,
        "StackName": one.name,
        "Description": one.description,
        "Parameters": _parameters(one.given),
        "CreationTime": one.created_at,
        "StackStatus": one.status,
        "DisableRollback": False,
        "NotificationARNs": [],
        "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
        "Outputs": one.outputs,
        "Tags": one.tags,
        "EnableTerminationProtection": one.is_protected,
        "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
    }
    optional = {"StackStatusReason": one.reason, "LastUpdatedTime": one.updated_at, "RoleARN": one.role_arn}
    return found | {name: value for name, value in optional.items() if value}


def _parameters(given: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"ParameterKey": name, "ParameterValue": value} for name, value in sorted(given.items())]


def _resources(stack: Stack) -> list[Answer]:
    return [
        {
            "LogicalResourceId": one.logical_id,
            "PhysicalResourceId": one.made.physical_id,
            "ResourceType": one.type,
            "LastUpdatedTimestamp": one.at,
            "ResourceStatus": one.status,
            "DriftInformation": {"StackResourceDriftStatus": "NOT_CHECKED"},
        }
        | ({"ResourceStatusReason": one.reason} if one.reason else {})
        for one in sorted(stack.resources.values(), key=lambda each: each.logical_id)
    ]
