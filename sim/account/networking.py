"""EC2's security groups and VPC endpoints that stacks make, kept beside the cloud's own."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, TypeAlias

from sim.cloud.cloud import Cloud
from sim.http.protocol import ApiError, NotOurs
from sim.http.queries import Wire, filtered

Answer: TypeAlias = dict[str, Any]

_GROUP_PATHS: Final = {"group-id": "GroupId", "group-name": "GroupName", "vpc-id": "VpcId"}
_ENDPOINT_PATHS: Final = {
    "service-name": "ServiceName",
    "vpc-endpoint-id": "VpcEndpointId",
    "vpc-endpoint-type": "VpcEndpointType",
    "vpc-id": "VpcId",
}


class Networking:
    """All of the account's that were made here."""

    def __init__(self, cloud: Cloud) -> None:
        """Begin without any beside those of *cloud*."""
        self._cloud = cloud
        self._made = 0
        self._groups: dict[str, Answer] = {}
        self._endpoints: dict[str, Answer] = {}
        self._rules: dict[str, Answer] = {}
        self.handlers: Mapping[str, Callable[[Wire], Answer]] = {
            "AuthorizeSecurityGroupEgress": lambda said: self._authorize(said, is_egress=True),
            "AuthorizeSecurityGroupIngress": lambda said: self._authorize(said, is_egress=False),
            "CreateSecurityGroup": self._create_group,
            "CreateVpcEndpoint": self._create_endpoint,
            "DeleteSecurityGroup": self._delete_group,
            "DeleteVpcEndpoints": self._delete_endpoints,
            "DescribeSecurityGroupRules": self._describe_rules,
            "DescribeSecurityGroups": self._describe_groups,
            "DescribeVpcEndpoints": self._describe_endpoints,
            "ModifyVpcEndpoint": self._modify_endpoint,
            "RevokeSecurityGroupEgress": self._revoke,
            "RevokeSecurityGroupIngress": self._revoke,
        }

    def _id(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix}-{sha256(f'{prefix}{self._made}'.encode()).hexdigest()[:17]}"

    def _create_group(self, said: Wire) -> Answer:
        group_id = self._id("sg")
        self._groups[group_id] = {
            "GroupId": group_id,
            "GroupName": said["GroupName"],
            "Description": said["Description"],
            "VpcId": said.get("VpcId", ""),
            "Tags": _tags("security-group", said),
        }
        self._add(group_id, [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}], is_egress=True)
        return {"GroupId": group_id}

    def _describe_groups(self, said: Wire) -> Answer:
        """DescribeSecurityGroups of what was made here; asked for anything else, the cloud answers.

        Raises:
            NotOurs: none of them is among what was made here.
        """
        wanted = said.get("GroupIds", ())
        if not set(wanted) & self._groups.keys():
            raise NotOurs
        every = [self._wire(one) for one in self._groups.values() if one["GroupId"] in wanted]
        return {"SecurityGroups": filtered(every, said, _GROUP_PATHS)}

    def _wire(self, group: Answer) -> Answer:
        rules = [one for one in self._rules.values() if one["GroupId"] == group["GroupId"]]
        return {
            **group,
            "OwnerId": "",
            "IpPermissions": [one["Permission"] for one in rules if not one["IsEgress"]],
            "IpPermissionsEgress": [one["Permission"] for one in rules if one["IsEgress"]],
        }

    def _delete_group(self, said: Wire) -> Answer:
        group_id = said["GroupId"]
        if group_id not in self._groups:
            raise ApiError("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")
        users = [one for one in self._endpoints.values() if group_id in one.get("SecurityGroupIds", ())]
        users += [one for one in self._rules.values() if one["GroupId"] != group_id and group_id in str(one)]
        if users:
            raise ApiError("DependencyViolation", f"resource {group_id} has a dependent object")
        del self._groups[group_id]
        self._rules = {key: one for key, one in self._rules.items() if one["GroupId"] != group_id}
        return {}

    def _authorize(self, said: Wire, *, is_egress: bool) -> Answer:
        group_id = said["GroupId"]
        if group_id not in self._groups and not self._cloud.network.has_security_group(group_id):
            raise ApiError("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")
        made = self._add(group_id, said["IpPermissions"], is_egress=is_egress)
        rules = [{"SecurityGroupRuleId": one, "GroupId": group_id, "IsEgress": is_egress} for one in made]
        return {"Return": True, "SecurityGroupRules": rules}

    def _add(self, group_id: str, permissions: list[Answer], *, is_egress: bool) -> list[str]:
        made = [self._id("sgr") for _ in permissions]
        for rule_id, permission in zip(made, permissions, strict=True):
            self._rules[rule_id] = {"GroupId": group_id, "IsEgress": is_egress, "Permission": permission}
        return made

    def _revoke(self, said: Wire) -> Answer:
        wanted = said.get("IpPermissions", ())
        for rule_id, one in list(self._rules.items()):
            is_said = rule_id in said.get("SecurityGroupRuleIds", ()) or one["Permission"] in wanted
            if is_said and one["GroupId"] == said["GroupId"]:
                del self._rules[rule_id]
        return {"Return": True}

    def _describe_rules(self, said: Wire) -> Answer:
        every = [{"SecurityGroupRuleId": key, **one} for key, one in self._rules.items()]
        return {"SecurityGroupRules": filtered(every, said, {"group-id": "GroupId"})}

    def _create_endpoint(self, said: Wire) -> Answer:
        endpoint_id = self._id("vpce")
        fields = ("VpcId", "ServiceName", "PolicyDocument", "PrivateDnsEnabled", "RouteTableIds", "SubnetIds")
        self._endpoints[endpoint_id] = {
            "VpcEndpointId": endpoint_id,
            "VpcEndpointType": said.get("VpcEndpointType", "Gateway"),
            "State": "available",
            **{key: said[key] for key in (*fields, "SecurityGroupIds") if key in said},
            "Tags": _tags("vpc-endpoint", said),
        }
        return {"VpcEndpoint": self._shown(endpoint_id)}

    def _modify_endpoint(self, said: Wire) -> Answer:
        one = self._endpoints[said["VpcEndpointId"]]
        for key, field in (
            ("Subnet", "SubnetIds"),
            ("SecurityGroup", "SecurityGroupIds"),
            ("RouteTable", "RouteTableIds"),
        ):
            kept = [each for each in one.get(field, ()) if each not in said.get(f"Remove{key}Ids", ())]
            one[field] = [*kept, *(each for each in said.get(f"Add{key}Ids", ()) if each not in kept)]
        one.update({key: said[key] for key in ("PolicyDocument", "PrivateDnsEnabled") if key in said})
        return {"Return": True}

    def _shown(self, endpoint_id: str) -> Answer:
        one = self._endpoints[endpoint_id]
        groups = [{"GroupId": each, "GroupName": each} for each in one.get("SecurityGroupIds", ())]
        return {key: value for key, value in one.items() if key != "SecurityGroupIds"} | {"Groups": groups}

    def _describe_endpoints(self, said: Wire) -> Answer:
        wanted = said.get("VpcEndpointIds") or self._endpoints.keys()
        every = [self._shown(one) for one in self._endpoints if one in wanted]
        return {"VpcEndpoints": filtered(every, said, _ENDPOINT_PATHS)}

    def _delete_endpoints(self, said: Wire) -> Answer:
        for one in said["VpcEndpointIds"]:
            self._endpoints.pop(one, None)
        return {"Unsuccessful": []}


def _tags(kind: str, said: Wire) -> list[dict[str, str]]:
    return [tag for each in said.get("TagSpecifications", ()) if each["ResourceType"] == kind for tag in each["Tags"]]
