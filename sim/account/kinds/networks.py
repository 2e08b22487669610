"""EC2's security groups, their rules, and VPC endpoints."""

import json
from typing import Any, Final

from sim.account.kinds.kind import Kind, Made, Place, Said, only

_FAMILIES: Final = {"CidrIp": "IpRanges", "CidrIpv6": "Ipv6Ranges"}
_PREFIXES: Final = ("SourcePrefixListId", "DestinationPrefixListId")
_GROUPS: Final = ("SourceSecurityGroupId", "DestinationSecurityGroupId")


class SecurityGroup(Kind):
    """AWS::EC2::SecurityGroup."""

    fixed = frozenset({"GroupDescription", "GroupName", "VpcId"})

    def create(self, at: Place, said: Said) -> Made:
        """Make it; where ways out are said, they are the only ones."""
        ec2 = at.client("ec2")
        tags = (
            {"TagSpecifications": [{"ResourceType": "security-group", "Tags": said["Tags"]}]} if "Tags" in said else {}
        )
        group_id = ec2.create_security_group(
            GroupName=said.get("GroupName") or at.named(255),
            Description=said["GroupDescription"],
            **only(said, "VpcId"),
            **tags,
        )["GroupId"]
        made = Made(physical_id=group_id, attributes={"GroupId": group_id, "VpcId": said.get("VpcId", "")})
        at.begun.append(made)
        if "SecurityGroupEgress" in said:
            everywhere = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
            ec2.revoke_security_group_egress(GroupId=group_id, IpPermissions=everywhere)
        return self.update(at, made, {}, said)

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Let in and out what is said now, and no more what is no longer."""
        ec2 = at.client("ec2")
        for way, allow, forbid in (
            ("SecurityGroupIngress", ec2.authorize_security_group_ingress, ec2.revoke_security_group_ingress),
            ("SecurityGroupEgress", ec2.authorize_security_group_egress, ec2.revoke_security_group_egress),
        ):
            was, will_be = ([permission(one) for one in side.get(way, ())] for side in (old, new))
            added, gone = [one for one in will_be if one not in was], [one for one in was if one not in will_be]
            if added:
                allow(GroupId=made.physical_id, IpPermissions=added)
            if gone:
                forbid(GroupId=made.physical_id, IpPermissions=gone)
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away, if nothing uses it."""
        del said
        at.client("ec2").delete_security_group(GroupId=made.physical_id)


class SecurityGroupRule(Kind):
    """AWS::EC2::SecurityGroupIngress and AWS::EC2::SecurityGroupEgress."""

    all_fixed = True

    def create(self, at: Place, said: Said) -> Made:
        """Allow it."""
        ec2 = at.client("ec2")
        allow = ec2.authorize_security_group_egress if _is_egress(at) else ec2.authorize_security_group_ingress
        made = allow(GroupId=said["GroupId"], IpPermissions=[permission(said)])["SecurityGroupRules"]
        rule = made[0]["SecurityGroupRuleId"]
        return Made(physical_id=rule, attributes={"Id": rule})

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Allow it no more."""
        ec2 = at.client("ec2")
        forbid = ec2.revoke_security_group_egress if _is_egress(at) else ec2.revoke_security_group_ingress
        forbid(GroupId=said["GroupId"], SecurityGroupRuleIds=[made.physical_id])


def _is_egress(at: Place) -> bool:
    return at.type.endswith("Egress")


def permission(said: Said) -> dict[str, Any]:
    """Answer a rule of a template in the API's words.

    >>> permission({"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "10.0.0.0/8"})
    {'IpProtocol': 'tcp', 'FromPort': 443, 'ToPort': 443, 'IpRanges': [{'CidrIp': '10.0.0.0/8'}]}
    """
    ports = {key: int(said[key]) for key in ("FromPort", "ToPort") if key in said}
    noted = only(said, "Description")
    peers: dict[str, Any] = {_FAMILIES[key]: [{key: said[key], **noted}] for key in _FAMILIES if key in said}
    peers |= {"PrefixListIds": [{"PrefixListId": one, **noted}] for one in _said(said, _PREFIXES)}  # noqa: B035 - one at most
    peers |= {"UserIdGroupPairs": [{"GroupId": one, **noted}] for one in _said(said, _GROUPS)}  # noqa: B035 - as above
    return {"IpProtocol": str(said["IpProtocol"]), **ports, **peers}


def _said(said: Said, names: tuple[str, ...]) -> list[str]:
    return [said[name] for name in names if name in said]


class VpcEndpoint(Kind):
    """AWS::EC2::VPCEndpoint."""

    fixed = frozenset({"ServiceName", "VpcEndpointType", "VpcId"})
    _LISTS: Final = {"RouteTableIds": "RouteTable", "SecurityGroupIds": "SecurityGroup", "SubnetIds": "Subnet"}

    def create(self, at: Place, said: Said) -> Made:
        """Make it."""
        fields = ("PrivateDnsEnabled", "ServiceName", "VpcEndpointType", "VpcId", *self._LISTS)
        policy = {"PolicyDocument": json.dumps(said["PolicyDocument"])} if "PolicyDocument" in said else {}
        made = at.client("ec2").create_vpc_endpoint(**only(said, *fields), **policy)["VpcEndpoint"]
        return Made(physical_id=made["VpcEndpointId"], attributes={"Id": made["VpcEndpointId"]})

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Change where it is and what it lets through."""
        said = only(new, "PrivateDnsEnabled")
        if "PolicyDocument" in new:
            said["PolicyDocument"] = json.dumps(new["PolicyDocument"])
        for field, name in self._LISTS.items():
            said[f"Add{name}Ids"] = [one for one in new.get(field, ()) if one not in old.get(field, ())]
            said[f"Remove{name}Ids"] = [one for one in old.get(field, ()) if one not in new.get(field, ())]
        at.client("ec2").modify_vpc_endpoint(VpcEndpointId=made.physical_id, **said)
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away."""
        del said
        at.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[made.physical_id])
