"""EC2 security groups and VPC endpoints that stacks create, in addition to those of the simulated cloud."""

import json
from hashlib import sha256
from typing import Final

from sim.aws_http.filters_and_pages import filter_items
from sim.aws_http.protocol import ApiDict, ApiError, ApiHandlers, ApiResponse, NotOurs
from sim.cloud.cloud import Cloud
from sim.iam.patterns_and_variables import IamRequest
from sim.iam.policy import AccessDecision, evaluate_policies, parse_policy

_GROUP_FILTER_PATHS: Final = {"group-id": "GroupId", "group-name": "GroupName", "vpc-id": "VpcId"}
_ENDPOINT_FILTER_PATHS: Final = {
    "service-name": "ServiceName",
    "vpc-endpoint-id": "VpcEndpointId",
    "vpc-endpoint-type": "VpcEndpointType",
    "vpc-id": "VpcId",
}


class NetworkingApi:
    """The created security groups, rules and VPC endpoints, and the EC2 API calls for them."""

    def __init__(self, cloud: Cloud) -> None:
        """Start with only the resources of *cloud*."""
        self._cloud = cloud
        self._id_count = 0
        self._groups: dict[str, ApiResponse] = {}
        self._endpoints: dict[str, ApiResponse] = {}
        self._rules: dict[str, ApiResponse] = {}
        self.handlers: ApiHandlers = {
            "AuthorizeSecurityGroupEgress": lambda request: self._authorize(request, is_egress=True),
            "AuthorizeSecurityGroupIngress": lambda request: self._authorize(request, is_egress=False),
            "CreateSecurityGroup": self._create_group,
            "CreateVpcEndpoint": self._create_endpoint,
            "DeleteSecurityGroup": self._delete_group,
            "DeleteVpcEndpoints": self._delete_endpoints,
            "DescribeSecurityGroupRules": self._describe_rules,
            "DescribeSecurityGroups": self._describe_groups,
            "DescribeVpcEndpoints": self._describe_endpoints,
            "ModifyVpcEndpoint": self._modify_endpoint,
            "RevokeSecurityGroupEgress": self._revoke_rules,
            "RevokeSecurityGroupIngress": self._revoke_rules,
        }

    def can_put_object(self, arn: str) -> bool:
        """Return whether the S3 gateway endpoints let a presigned PUT of the object *arn* out of their VPC.

        The URL is signed by an account of AWS, so statements for requests of this account do not apply. Without an
        endpoint, or without a policy, every request leaves the VPC.
        """
        request = IamRequest(action="s3:PutObject", resource=arn, principal="*")
        return all(
            evaluate_policies([parse_policy(json.loads(endpoint["PolicyDocument"]))], request) is AccessDecision.ALLOWED
            for endpoint in self._endpoints.values()
            if endpoint["ServiceName"].endswith(".s3") and "PolicyDocument" in endpoint
        )

    def _generate_id(self, prefix: str) -> str:
        self._id_count += 1
        return f"{prefix}-{sha256(f'{prefix}{self._id_count}'.encode()).hexdigest()[:17]}"

    def _create_group(self, request: ApiDict) -> ApiResponse:
        group_id = self._generate_id("sg")
        self._groups[group_id] = {
            "GroupId": group_id,
            "GroupName": request["GroupName"],
            "Description": request["Description"],
            "VpcId": request.get("VpcId", ""),
            "Tags": _select_tags("security-group", request),
        }
        self._add_rules(group_id, [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}], is_egress=True)
        return {"GroupId": group_id}

    def _describe_groups(self, request: ApiDict) -> ApiResponse:
        """Handle DescribeSecurityGroups for the security groups that were created here; others are in the cloud.

        Raises:
            NotOurs: none of the requested security groups was created here.
        """
        group_ids = request.get("GroupIds", ())
        if not set(group_ids) & self._groups.keys():
            raise NotOurs
        groups = [self._build_group_response(group) for group in self._groups.values() if group["GroupId"] in group_ids]
        return {"SecurityGroups": filter_items(groups, request, _GROUP_FILTER_PATHS)}

    def _build_group_response(self, group: ApiResponse) -> ApiResponse:
        rules = [rule for rule in self._rules.values() if rule["GroupId"] == group["GroupId"]]
        return {
            **group,
            "OwnerId": "",
            "IpPermissions": [rule["Permission"] for rule in rules if not rule["IsEgress"]],
            "IpPermissionsEgress": [rule["Permission"] for rule in rules if rule["IsEgress"]],
        }

    def _delete_group(self, request: ApiDict) -> ApiResponse:
        group_id = request["GroupId"]
        if group_id not in self._groups:
            raise ApiError("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")
        users = [endpoint for endpoint in self._endpoints.values() if group_id in endpoint.get("SecurityGroupIds", ())]
        users += [rule for rule in self._rules.values() if rule["GroupId"] != group_id and group_id in str(rule)]
        if users:
            raise ApiError("DependencyViolation", f"resource {group_id} has a dependent object")
        del self._groups[group_id]
        self._rules = {key: rule for key, rule in self._rules.items() if rule["GroupId"] != group_id}
        return {}

    def _authorize(self, request: ApiDict, *, is_egress: bool) -> ApiResponse:
        group_id = request["GroupId"]
        if group_id not in self._groups and not self._cloud.network.has_security_group(group_id):
            raise ApiError("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")
        rule_ids = self._add_rules(group_id, request["IpPermissions"], is_egress=is_egress)
        rules = [{"SecurityGroupRuleId": rule_id, "GroupId": group_id, "IsEgress": is_egress} for rule_id in rule_ids]
        return {"Return": True, "SecurityGroupRules": rules}

    def _add_rules(self, group_id: str, permissions: list[ApiResponse], *, is_egress: bool) -> list[str]:
        rule_ids = [self._generate_id("sgr") for _ in permissions]
        for rule_id, permission in zip(rule_ids, permissions, strict=True):
            self._rules[rule_id] = {"GroupId": group_id, "IsEgress": is_egress, "Permission": permission}
        return rule_ids

    def _revoke_rules(self, request: ApiDict) -> ApiResponse:
        permissions = request.get("IpPermissions", ())
        for rule_id, rule in list(self._rules.items()):
            is_selected = rule_id in request.get("SecurityGroupRuleIds", ()) or rule["Permission"] in permissions
            if is_selected and rule["GroupId"] == request["GroupId"]:
                del self._rules[rule_id]
        return {"Return": True}

    def _describe_rules(self, request: ApiDict) -> ApiResponse:
        rules = [{"SecurityGroupRuleId": key, **rule} for key, rule in self._rules.items()]
        return {"SecurityGroupRules": filter_items(rules, request, {"group-id": "GroupId"})}

    def _create_endpoint(self, request: ApiDict) -> ApiResponse:
        endpoint_id = self._generate_id("vpce")
        fields = ("VpcId", "ServiceName", "PolicyDocument", "PrivateDnsEnabled", "RouteTableIds", "SubnetIds")
        self._endpoints[endpoint_id] = {
            "VpcEndpointId": endpoint_id,
            "VpcEndpointType": request.get("VpcEndpointType", "Gateway"),
            "State": "available",
            **{key: request[key] for key in (*fields, "SecurityGroupIds") if key in request},
            "Tags": _select_tags("vpc-endpoint", request),
        }
        return {"VpcEndpoint": self._build_endpoint_response(endpoint_id)}

    def _modify_endpoint(self, request: ApiDict) -> ApiResponse:
        endpoint = self._endpoints[request["VpcEndpointId"]]
        for key, field in (
            ("Subnet", "SubnetIds"),
            ("SecurityGroup", "SecurityGroupIds"),
            ("RouteTable", "RouteTableIds"),
        ):
            kept_ids = [
                resource_id
                for resource_id in endpoint.get(field, ())
                if resource_id not in request.get(f"Remove{key}Ids", ())
            ]
            endpoint[field] = [
                *kept_ids,
                *(resource_id for resource_id in request.get(f"Add{key}Ids", ()) if resource_id not in kept_ids),
            ]
        endpoint.update({key: request[key] for key in ("PolicyDocument", "PrivateDnsEnabled") if key in request})
        return {"Return": True}

    def _build_endpoint_response(self, endpoint_id: str) -> ApiResponse:
        endpoint = self._endpoints[endpoint_id]
        groups = [{"GroupId": group_id, "GroupName": group_id} for group_id in endpoint.get("SecurityGroupIds", ())]
        return {key: value for key, value in endpoint.items() if key != "SecurityGroupIds"} | {"Groups": groups}

    def _describe_endpoints(self, request: ApiDict) -> ApiResponse:
        endpoint_ids = request.get("VpcEndpointIds") or self._endpoints.keys()
        endpoints = [
            self._build_endpoint_response(endpoint_id) for endpoint_id in self._endpoints if endpoint_id in endpoint_ids
        ]
        return {"VpcEndpoints": filter_items(endpoints, request, _ENDPOINT_FILTER_PATHS)}

    def _delete_endpoints(self, request: ApiDict) -> ApiResponse:
        for endpoint_id in request["VpcEndpointIds"]:
            self._endpoints.pop(endpoint_id, None)
        return {"Unsuccessful": []}


def _select_tags(resource_type: str, request: ApiDict) -> list[dict[str, str]]:
    return [
        tag
        for specification in request.get("TagSpecifications", ())
        if specification["ResourceType"] == resource_type
        for tag in specification["Tags"]
    ]
