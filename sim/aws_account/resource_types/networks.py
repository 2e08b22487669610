"""EC2 security groups, their rules, and VPC endpoints."""

import json
from typing import Any, Final

from sim.aws_account.resource_types.resource_provider import (
    ConfiguredResourceProvider,
    PhysicalResource,
    Properties,
    ResourceProvider,
    ResourceRequest,
    build_resource,
    select_keys,
)

_CIDR_FIELDS: Final = {"CidrIp": "IpRanges", "CidrIpv6": "Ipv6Ranges"}
_PREFIX_LIST_PROPERTIES: Final = ("SourcePrefixListId", "DestinationPrefixListId")
_GROUP_PROPERTIES: Final = ("SourceSecurityGroupId", "DestinationSecurityGroupId")


class SecurityGroupProvider(ConfiguredResourceProvider):
    """AWS::EC2::SecurityGroup."""

    create_only_properties = frozenset({"GroupDescription", "GroupName", "VpcId"})
    delete_call = ("ec2", "delete_security_group", "GroupId")

    def create_unconfigured(self, request: ResourceRequest) -> PhysicalResource:
        """Create the security group with EC2's default egress rule."""
        ec2, properties = request.get_client("ec2"), request.properties
        settings = select_keys(properties, "VpcId")
        if "Tags" in properties:
            settings["TagSpecifications"] = [{"ResourceType": "security-group", "Tags": properties["Tags"]}]
        name, description = request.choose_name("GroupName", 255), properties["GroupDescription"]
        group_id = ec2.create_security_group(GroupName=name, Description=description, **settings)["GroupId"]
        return build_resource(group_id, GroupId=group_id, VpcId=properties.get("VpcId", ""))

    def configure(self, request: ResourceRequest, physical_id: str) -> None:
        """Authorize added ingress and egress rules, and revoke removed rules and a default egress rule."""
        ec2 = request.get_client("ec2")
        if "SecurityGroupEgress" in request.properties and not request.physical_id:
            default_egress = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
            ec2.revoke_security_group_egress(GroupId=physical_id, IpPermissions=default_egress)
        for direction, authorize, revoke in (
            ("SecurityGroupIngress", ec2.authorize_security_group_ingress, ec2.revoke_security_group_ingress),
            ("SecurityGroupEgress", ec2.authorize_security_group_egress, ec2.revoke_security_group_egress),
        ):
            old_rules, new_rules = (
                [build_ip_permission(rule) for rule in properties.get(direction, ())]
                for properties in (request.old_properties, request.properties)
            )
            if added_rules := [rule for rule in new_rules if rule not in old_rules]:
                authorize(GroupId=physical_id, IpPermissions=added_rules)
            if removed_rules := [rule for rule in old_rules if rule not in new_rules]:
                revoke(GroupId=physical_id, IpPermissions=removed_rules)


class SecurityGroupRuleProvider(ResourceProvider):
    """AWS::EC2::SecurityGroupIngress and AWS::EC2::SecurityGroupEgress."""

    is_immutable = True

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Authorize the rule."""
        ec2, permissions = request.get_client("ec2"), [build_ip_permission(request.properties)]
        authorize = ec2.authorize_security_group_egress if _is_egress(request) else ec2.authorize_security_group_ingress
        rules = authorize(GroupId=request.properties["GroupId"], IpPermissions=permissions)["SecurityGroupRules"]
        rule_id = rules[0]["SecurityGroupRuleId"]
        return build_resource(rule_id, Id=rule_id)

    def delete(self, request: ResourceRequest) -> None:
        """Revoke the rule."""
        ec2 = request.get_client("ec2")
        revoke = ec2.revoke_security_group_egress if _is_egress(request) else ec2.revoke_security_group_ingress
        revoke(GroupId=request.properties["GroupId"], SecurityGroupRuleIds=[request.physical_id])


def _is_egress(request: ResourceRequest) -> bool:
    return request.type.endswith("Egress")


def build_ip_permission(properties: Properties) -> dict[str, Any]:
    """Return a rule of a template in the format of the EC2 API.

    >>> build_ip_permission({"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "10.0.0.0/8"})
    {'IpProtocol': 'tcp', 'FromPort': 443, 'ToPort': 443, 'IpRanges': [{'CidrIp': '10.0.0.0/8'}]}
    """
    ports = {key: int(properties[key]) for key in ("FromPort", "ToPort") if key in properties}
    description = select_keys(properties, "Description")
    peers: dict[str, Any] = {
        _CIDR_FIELDS[key]: [{key: properties[key], **description}] for key in _CIDR_FIELDS if key in properties
    }
    if prefix_list_ids := _list_values(properties, _PREFIX_LIST_PROPERTIES):
        peers["PrefixListIds"] = [{"PrefixListId": prefix_list_ids[-1], **description}]
    if group_ids := _list_values(properties, _GROUP_PROPERTIES):
        peers["UserIdGroupPairs"] = [{"GroupId": group_ids[-1], **description}]
    return {"IpProtocol": str(properties["IpProtocol"]), **ports, **peers}


def _list_values(properties: Properties, names: tuple[str, ...]) -> list[str]:
    return [properties[name] for name in names if name in properties]


class VpcEndpointProvider(ResourceProvider):
    """AWS::EC2::VPCEndpoint."""

    create_only_properties = frozenset({"ServiceName", "VpcEndpointType", "VpcId"})
    delete_call = ("ec2", "delete_vpc_endpoints", "VpcEndpointIds")
    _LIST_PROPERTIES: Final = {
        "RouteTableIds": "RouteTable",
        "SecurityGroupIds": "SecurityGroup",
        "SubnetIds": "Subnet",
    }

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the VPC endpoint."""
        fields = ("PrivateDnsEnabled", "ServiceName", "VpcEndpointType", "VpcId", *self._LIST_PROPERTIES)
        settings = select_keys(request.properties, *fields) | _build_policy(request.properties)
        endpoint_id = request.get_client("ec2").create_vpc_endpoint(**settings)["VpcEndpoint"]["VpcEndpointId"]
        return build_resource(endpoint_id, Id=endpoint_id)

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Update the subnets, route tables, security groups and the policy of the VPC endpoint."""
        changes = select_keys(request.properties, "PrivateDnsEnabled") | _build_policy(request.properties)
        for field, name in self._LIST_PROPERTIES.items():
            old_ids, new_ids = request.old_properties.get(field, ()), request.properties.get(field, ())
            changes[f"Add{name}Ids"] = [resource_id for resource_id in new_ids if resource_id not in old_ids]
            changes[f"Remove{name}Ids"] = [resource_id for resource_id in old_ids if resource_id not in new_ids]
        request.get_client("ec2").modify_vpc_endpoint(VpcEndpointId=request.physical_id, **changes)
        return request.resource


def _build_policy(properties: Properties) -> dict[str, str]:
    return {key: json.dumps(document) for key, document in select_keys(properties, "PolicyDocument").items()}
