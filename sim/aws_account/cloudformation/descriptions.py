"""The CloudFormation API calls that describe stacks, and the lookup of stacks."""

import re
from collections.abc import Mapping
from typing import Final

from sim.aws_account.cloudformation.stack import ChangeSet, Stack
from sim.aws_account.cloudformation.template_parser import InvalidTemplate, parse_template
from sim.aws_account.function_runtime import AccountServices
from sim.aws_http.protocol import ApiDict, ApiError, ApiHandlers, ApiResponse

_MAX_EVENTS_PER_PAGE: Final = 100
_S3_URL_PATTERN: Final = re.compile(r"https?://(?:(?P<host>[^/]+)\.s3[.-][^/]+|[^/]+/(?P<path>[^/]+))/(?P<key>.+)")


class StackStore:
    """All stacks of the account, including deleted ones."""

    def __init__(self, services: AccountServices) -> None:
        """Start without stacks."""
        self._services = services
        self.stacks: list[Stack] = []
        self.handlers: ApiHandlers = {
            "DescribeChangeSet": self._describe_change_set,
            "DescribeEvents": lambda _: {"OperationEvents": []},
            "DescribeStackEvents": self._describe_events,
            "DescribeStackResource": self._describe_resource,
            "DescribeStackResources": self._describe_resources,
            "DescribeStacks": self._describe_stacks,
            "GetTemplate": self._get_template,
            "GetTemplateSummary": self._get_template_summary,
            "ListExports": self._list_exports,
            "ListStackResources": self._list_resources,
            "ListStacks": self._list_stacks,
            "ValidateTemplate": self._get_template_summary,
        }

    def get_stack(self, name: str) -> Stack:
        """Return the stack with the name or ARN *name*.

        Raises:
            ApiError: there is no such stack.
        """
        for stack in reversed(self.stacks):
            if name == stack.arn or (name == stack.name and not stack.is_deleted):
                return stack
        raise ApiError("ValidationError", f"Stack with id {name} does not exist")

    def get_export(self, name: str) -> str:
        """Return the value of the export *name*.

        Raises:
            InvalidTemplate: no stack has such an export.
        """
        for stack in self.stacks:
            for output in stack.outputs:
                if output.get("ExportName") == name and not stack.is_deleted:
                    return output["OutputValue"]
        raise InvalidTemplate(f"No export named {name} found.")

    def load_template_body(self, request: ApiDict) -> str:
        """Return the template in TemplateBody, or the object at TemplateURL.

        Raises:
            ApiError: the URL is not an S3 URL.
        """
        if "TemplateURL" not in request:
            return str(request["TemplateBody"])
        url_match = _S3_URL_PATTERN.fullmatch(request["TemplateURL"])
        if url_match is None:
            raise ApiError("ValidationError", "TemplateURL must be a supported URL.")
        bucket = url_match["path"] or url_match["host"]
        return str(
            self._services.get_client("s3").get_object(Bucket=bucket, Key=url_match["key"])["Body"].read().decode()
        )

    def get_change_set(self, request: ApiDict) -> tuple[Stack, ChangeSet]:
        """Return the change set in the parameters of a call, and its stack.

        Raises:
            ApiError: there is no such change set.
        """
        name = request["ChangeSetName"]
        stacks = [self.get_stack(request["StackName"])] if "StackName" in request else self.stacks
        for stack in stacks:
            for change_set in stack.change_sets.values():
                if name in (change_set.name, change_set.arn):
                    return stack, change_set
        raise ApiError("ChangeSetNotFound", f"ChangeSet [{name}] does not exist", 404)

    def _describe_change_set(self, request: ApiDict) -> ApiResponse:
        stack, change_set = self.get_change_set(request)
        return {
            "ChangeSetName": change_set.name,
            "ChangeSetId": change_set.arn,
            "StackId": stack.arn,
            "StackName": stack.name,
            "Parameters": _build_parameter_list(change_set.spec.parameters),
            "CreationTime": change_set.created_at,
            "ExecutionStatus": change_set.execution_status,
            "Status": change_set.status,
            "Capabilities": [],
            "Tags": change_set.spec.tags,
            "Changes": change_set.changes,
        } | ({"StatusReason": change_set.reason} if change_set.reason else {})

    def _describe_stacks(self, request: ApiDict) -> ApiResponse:
        if "StackName" in request:
            return {"Stacks": [_build_stack_response(self.get_stack(request["StackName"]))]}
        return {"Stacks": [_build_stack_response(stack) for stack in self.stacks if not stack.is_deleted]}

    def _describe_events(self, request: ApiDict) -> ApiResponse:
        stack = self.get_stack(request["StackName"])
        end = int(request.get("NextToken") or len(stack.events))
        events = stack.events[:end]
        next_page = {"NextToken": str(len(events) - _MAX_EVENTS_PER_PAGE)} if len(events) > _MAX_EVENTS_PER_PAGE else {}
        return {
            "StackEvents": [
                {
                    "StackId": stack.arn,
                    "StackName": stack.name,
                    "EventId": f"{event.logical_id}-{event.ordinal}",
                    "LogicalResourceId": event.logical_id,
                    "PhysicalResourceId": event.physical_id,
                    "ResourceType": event.type,
                    "Timestamp": event.at,
                    "ResourceStatus": event.status,
                }
                | ({"ResourceStatusReason": event.reason} if event.reason else {})
                | ({"ClientRequestToken": event.token} if event.token else {})
                for event in reversed(events[-_MAX_EVENTS_PER_PAGE:])
            ],
            **next_page,
        }

    def _describe_resources(self, request: ApiDict) -> ApiResponse:
        if "StackName" not in request:
            physical_id = request["PhysicalResourceId"]
            owners = [
                stack
                for stack in self.stacks
                for resource in [*stack.resources.values()]
                if resource.physical_resource.physical_id == physical_id
            ]
            if not owners:
                raise ApiError("ValidationError", f"Stack for {physical_id} does not exist")
            stack = owners[-1]
        else:
            stack = self.get_stack(request["StackName"])
        return {
            "StackResources": [
                summary | {"StackId": stack.arn, "StackName": stack.name, "Timestamp": summary["LastUpdatedTimestamp"]}
                for summary in _build_resource_summaries(stack)
                if request.get("LogicalResourceId") in (None, summary["LogicalResourceId"])
            ]
        }

    def _describe_resource(self, request: ApiDict) -> ApiResponse:
        stack, name = self.get_stack(request["StackName"]), request["LogicalResourceId"]
        summaries = [summary for summary in _build_resource_summaries(stack) if summary["LogicalResourceId"] == name]
        if not summaries:
            raise ApiError("ValidationError", f"Resource {name} does not exist for stack {stack.name}")
        return {"StackResourceDetail": summaries[0] | {"StackId": stack.arn, "StackName": stack.name}}

    def _list_resources(self, request: ApiDict) -> ApiResponse:
        return {"StackResourceSummaries": _build_resource_summaries(self.get_stack(request["StackName"]))}

    def _list_stacks(self, request: ApiDict) -> ApiResponse:
        statuses = request.get("StackStatusFilter", ())
        return {
            "StackSummaries": [
                {
                    "StackId": stack.arn,
                    "StackName": stack.name,
                    "CreationTime": stack.created_at,
                    "StackStatus": stack.status,
                }
                for stack in self.stacks
                if not statuses or stack.status in statuses
            ]
        }

    def _list_exports(self, request: ApiDict) -> ApiResponse:
        del request
        return {
            "Exports": [
                {"ExportingStackId": stack.arn, "Name": output["ExportName"], "Value": output["OutputValue"]}
                for stack in self.stacks
                for output in stack.outputs
                if "ExportName" in output and not stack.is_deleted
            ]
        }

    def _get_template(self, request: ApiDict) -> ApiResponse:
        if "ChangeSetName" in request:
            return {"TemplateBody": self.get_change_set(request)[1].spec.template_body}
        return {
            "TemplateBody": self.get_stack(request["StackName"]).template_body,
            "StagesAvailable": ["Original", "Processed"],
        }

    def _get_template_summary(self, request: ApiDict) -> ApiResponse:
        has_body = "TemplateBody" in request or "TemplateURL" in request
        template = (
            parse_template(self.load_template_body(request))
            if has_body
            else self.get_stack(request["StackName"]).template
        )
        parameters = template.get("Parameters", {})
        return {
            "Description": template.get("Description", ""),
            "Parameters": [
                {"ParameterKey": name, "ParameterType": parameter["Type"], "NoEcho": False}
                | ({"DefaultValue": str(parameter["Default"])} if "Default" in parameter else {})
                for name, parameter in parameters.items()
            ],
            "ResourceTypes": sorted({definition["Type"] for definition in template["Resources"].values()}),
        }


def _build_stack_response(stack: Stack) -> ApiResponse:
    response: ApiResponse = {
        "StackId": stack.arn,
        "StackName": stack.name,
        "Description": stack.description,
        "Parameters": _build_parameter_list(stack.parameters),
        "CreationTime": stack.created_at,
        "StackStatus": stack.status,
        "DisableRollback": False,
        "NotificationARNs": [],
        "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
        "Outputs": stack.outputs,
        "Tags": stack.tags,
        "EnableTerminationProtection": stack.is_protected,
        "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
    }
    optional = {"StackStatusReason": stack.reason, "LastUpdatedTime": stack.updated_at, "RoleARN": stack.role_arn}
    return response | {name: value for name, value in optional.items() if value}


def _build_parameter_list(parameters: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"ParameterKey": name, "ParameterValue": value} for name, value in sorted(parameters.items())]


def _build_resource_summaries(stack: Stack) -> list[ApiResponse]:
    return [
        {
            "LogicalResourceId": resource.logical_id,
            "PhysicalResourceId": resource.physical_resource.physical_id,
            "ResourceType": resource.type,
            "LastUpdatedTimestamp": resource.updated_at,
            "ResourceStatus": resource.status,
            "DriftInformation": {"StackResourceDriftStatus": "NOT_CHECKED"},
        }
        | ({"ResourceStatusReason": resource.reason} if resource.reason else {})
        for resource in sorted(stack.resources.values(), key=lambda item: item.logical_id)
    ]
