"""IAM's roles and policies, and EKS's access entries."""

import json
from typing import Any

from sim.account.kinds.kind import Kind, Made, Place, Said, Setting, only


class Role(Kind):
    """AWS::IAM::Role."""

    fixed = frozenset({"Path", "RoleName"})

    def create(self, at: Place, said: Said) -> Made:
        """Make it with all that it may do."""
        name = said.get("RoleName") or at.named()
        rest = only(said, "Description", "MaxSessionDuration", "Path", "PermissionsBoundary", "Tags")
        trust = json.dumps(said["AssumeRolePolicyDocument"])
        made = at.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=trust, **rest)["Role"]
        there = Made(physical_id=name, attributes={"Arn": made["Arn"], "RoleId": made["RoleId"]})
        at.begun.append(there)
        self._write(at, name, {}, said)
        return there

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Change whom it trusts and what it may do."""
        iam, name = at.client("iam"), made.physical_id
        iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(new["AssumeRolePolicyDocument"]))
        if "PermissionsBoundary" in new:
            iam.put_role_permissions_boundary(RoleName=name, PermissionsBoundary=new["PermissionsBoundary"])
        elif "PermissionsBoundary" in old:
            iam.delete_role_permissions_boundary(RoleName=name)
        self._write(at, name, old, new)
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away with those of its policies that are there; others that somebody attached hold it."""
        iam, name = at.client("iam"), made.physical_id
        attached = {one["PolicyArn"] for one in iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]}
        for arn in sorted(attached & set(said.get("ManagedPolicyArns", ()))):
            iam.detach_role_policy(RoleName=name, PolicyArn=arn)
        inline = set(iam.list_role_policies(RoleName=name)["PolicyNames"])
        for policy in sorted(inline & {one["PolicyName"] for one in said.get("Policies", ())}):
            iam.delete_role_policy(RoleName=name, PolicyName=policy)
        iam.delete_role(RoleName=name)

    def _write(self, at: Place, name: str, old: Said, new: Said) -> None:
        iam = at.client("iam")
        was, will_be = (set(one.get("ManagedPolicyArns", ())) for one in (old, new))
        for arn in sorted(will_be - was):
            iam.attach_role_policy(RoleName=name, PolicyArn=arn)
        for arn in sorted(was - will_be):
            iam.detach_role_policy(RoleName=name, PolicyArn=arn)
        inline = {one["PolicyName"]: one["PolicyDocument"] for one in new.get("Policies", ())}
        for policy, document in sorted(inline.items()):
            iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=json.dumps(document))
        for policy in sorted({one["PolicyName"] for one in old.get("Policies", ())} - inline.keys()):
            iam.delete_role_policy(RoleName=name, PolicyName=policy)


class Policy(Kind):
    """AWS::IAM::Policy: of roles."""

    def create(self, at: Place, said: Said) -> Made:
        """Give it to each role."""
        at.begun.append(Made(physical_id=at.named()))
        self._give(at, said, said["Roles"])
        return Made(physical_id=at.named())

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Give it to each role that is to have it now, and take it from the others."""
        self._give(at, new, new["Roles"])
        kept = new["Roles"] if old["PolicyName"] == new["PolicyName"] else []
        self._take(at, old, [one for one in old["Roles"] if one not in kept])
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it from each role."""
        del made
        self._take(at, said, said["Roles"])

    def _give(self, at: Place, said: Said, roles: list[str]) -> None:
        document = json.dumps(said["PolicyDocument"])
        for role in roles:
            at.client("iam").put_role_policy(RoleName=role, PolicyName=said["PolicyName"], PolicyDocument=document)

    def _take(self, at: Place, said: Said, roles: list[str]) -> None:
        for role in roles:
            at.client("iam").delete_role_policy(RoleName=role, PolicyName=said["PolicyName"])


class ManagedPolicy(Kind):
    """AWS::IAM::ManagedPolicy."""

    all_fixed = True

    def create(self, at: Place, said: Said) -> Made:
        """Make it, and attach it."""
        made = at.client("iam").create_policy(
            PolicyName=said.get("ManagedPolicyName") or at.named(128),
            PolicyDocument=json.dumps(said["PolicyDocument"]),
            **only(said, "Path", "Description"),
        )["Policy"]
        there = Made(physical_id=made["Arn"], attributes={"PolicyArn": made["Arn"]})
        at.begun.append(there)
        for role in said.get("Roles", ()):
            at.client("iam").attach_role_policy(RoleName=role, PolicyArn=made["Arn"])
        return there

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Detach it, and take it away."""
        for role in said.get("Roles", ()):
            at.client("iam").detach_role_policy(RoleName=role, PolicyArn=made.physical_id)
        at.client("iam").delete_policy(PolicyArn=made.physical_id)


class InstanceProfile(Kind):
    """AWS::IAM::InstanceProfile."""

    fixed = frozenset({"InstanceProfileName", "Path"})

    def create(self, at: Place, said: Said) -> Made:
        """Make it around its role."""
        iam, name = at.client("iam"), said.get("InstanceProfileName") or at.named(128)
        made = iam.create_instance_profile(InstanceProfileName=name, **only(said, "Path"))["InstanceProfile"]
        there = Made(physical_id=name, attributes={"Arn": made["Arn"]})
        at.begun.append(there)
        self._put(iam, name, said["Roles"])
        return there

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Put another role into it."""
        iam = at.client("iam")
        self._take(iam, made.physical_id, old["Roles"])
        self._put(iam, made.physical_id, new["Roles"])
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Empty it, and take it away."""
        iam = at.client("iam")
        self._take(iam, made.physical_id, said["Roles"])
        iam.delete_instance_profile(InstanceProfileName=made.physical_id)

    def _put(self, iam: Any, name: str, roles: list[str]) -> None:  # noqa: ANN401 - boto3's clients have no types
        for role in roles:
            iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)

    def _take(self, iam: Any, name: str, roles: list[str]) -> None:  # noqa: ANN401 - boto3's clients have no types
        for role in roles:
            iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role)


class AccessEntry(Setting):
    """AWS::EKS::AccessEntry."""

    fixed = frozenset({"ClusterName", "PrincipalArn", "Type"})

    def write(self, at: Place, said: Said, before: Made | None) -> Made:
        """Write whom the cluster lets in as what; policies that are no longer said are taken back."""
        eks = at.client("eks")
        who = {"clusterName": said["ClusterName"], "principalArn": said["PrincipalArn"]}
        given = {"kubernetesGroups": said.get("KubernetesGroups", [])} | (
            {"username": said["Username"]} if "Username" in said else {}
        )
        physical_id = f"{said['PrincipalArn']}|{said['ClusterName']}"
        if before is None:
            tags = {one["Key"]: one["Value"] for one in said.get("Tags", ())}
            eks.create_access_entry(**who, **given, type=said.get("Type", "STANDARD"), tags=tags)
            at.begun.append(Made(physical_id=physical_id))
        else:
            eks.update_access_entry(**who, **given)
        wanted = {one["PolicyArn"]: one["AccessScope"] for one in said.get("AccessPolicies", ())}
        for arn, scope in sorted(wanted.items()):
            reach = {"type": scope["Type"], "namespaces": scope.get("Namespaces", [])}
            eks.associate_access_policy(**who, policyArn=arn, accessScope=reach)
        for one in eks.list_associated_access_policies(**who)["associatedAccessPolicies"]:
            if one["policyArn"] not in wanted:
                eks.disassociate_access_policy(**who, policyArn=one["policyArn"])
        arn = eks.describe_access_entry(**who)["accessEntry"]["accessEntryArn"]
        return Made(physical_id=physical_id, attributes={"AccessEntryArn": arn})

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Let nobody in by it any more."""
        del made
        at.client("eks").delete_access_entry(clusterName=said["ClusterName"], principalArn=said["PrincipalArn"])
