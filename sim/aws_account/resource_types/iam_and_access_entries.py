"""IAM roles, policies and instance profiles, and EKS access entries."""

import json
from collections.abc import Iterable

from sim.aws_account.resource_types.resource_provider import (
    ConfiguredResourceProvider,
    PhysicalResource,
    Properties,
    PutResourceProvider,
    ResourceProvider,
    ResourceRequest,
    build_resource,
    select_keys,
)


class RoleProvider(ResourceProvider):
    """AWS::IAM::Role."""

    create_only_properties = frozenset({"Path", "RoleName"})

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the role with its policies."""
        name, properties = request.choose_name("RoleName"), request.properties
        settings = select_keys(properties, "Description", "MaxSessionDuration", "Path", "PermissionsBoundary", "Tags")
        trust = json.dumps(properties["AssumeRolePolicyDocument"])
        role = request.get_client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=trust, **settings)["Role"]
        resource = request.record_partial(name, Arn=role["Arn"], RoleId=role["RoleId"])
        self._write_policies(request, name)
        return resource

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Update the trust policy, the permissions boundary and the policies."""
        iam, name, properties = request.get_client("iam"), request.physical_id, request.properties
        trust = json.dumps(properties["AssumeRolePolicyDocument"])
        iam.update_assume_role_policy(RoleName=name, PolicyDocument=trust)
        if "PermissionsBoundary" in properties:
            iam.put_role_permissions_boundary(RoleName=name, PermissionsBoundary=properties["PermissionsBoundary"])
        elif "PermissionsBoundary" in request.old_properties:
            iam.delete_role_permissions_boundary(RoleName=name)
        self._write_policies(request, name)
        return request.resource

    def delete(self, request: ResourceRequest) -> None:
        """Delete the role with its own policies; other attached policies make the deletion fail."""
        iam, name = request.get_client("iam"), request.physical_id
        policies = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
        attached_arns = {policy["PolicyArn"] for policy in policies}
        for arn in sorted(attached_arns & set(request.properties.get("ManagedPolicyArns", ()))):
            iam.detach_role_policy(RoleName=name, PolicyArn=arn)
        inline_names = set(iam.list_role_policies(RoleName=name)["PolicyNames"])
        for policy in sorted(inline_names & _index_inline_policies(request.properties).keys()):
            iam.delete_role_policy(RoleName=name, PolicyName=policy)
        iam.delete_role(RoleName=name)

    def _write_policies(self, request: ResourceRequest, name: str) -> None:
        iam = request.get_client("iam")
        old_arns, new_arns = (
            set(properties.get("ManagedPolicyArns", ())) for properties in (request.old_properties, request.properties)
        )
        for arn in sorted(new_arns - old_arns):
            iam.attach_role_policy(RoleName=name, PolicyArn=arn)
        for arn in sorted(old_arns - new_arns):
            iam.detach_role_policy(RoleName=name, PolicyArn=arn)
        document_by_policy = _index_inline_policies(request.properties)
        for policy, document in sorted(document_by_policy.items()):
            iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=json.dumps(document))
        for policy in sorted(_index_inline_policies(request.old_properties).keys() - document_by_policy.keys()):
            iam.delete_role_policy(RoleName=name, PolicyName=policy)


def _index_inline_policies(properties: Properties) -> dict[str, Properties]:
    return {policy["PolicyName"]: policy["PolicyDocument"] for policy in properties.get("Policies", ())}


class PolicyProvider(ConfiguredResourceProvider):
    """AWS::IAM::Policy: an inline policy of roles."""

    def create_unconfigured(self, request: ResourceRequest) -> PhysicalResource:
        """Return a name; the policy exists on its roles only."""
        return build_resource(request.generate_name())

    def configure(self, request: ResourceRequest, physical_id: str) -> None:
        """Put the inline policy on each role, and delete it from the roles that an update removes."""
        del physical_id
        name, document = request.properties["PolicyName"], json.dumps(request.properties["PolicyDocument"])
        for role in request.properties["Roles"]:
            request.get_client("iam").put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=document)
        old_name, old_roles = request.old_properties.get("PolicyName", ""), request.old_properties.get("Roles", ())
        kept_roles = request.properties["Roles"] if old_name == name else []
        self._delete_from_roles(request, old_name, [role for role in old_roles if role not in kept_roles])

    def delete(self, request: ResourceRequest) -> None:
        """Delete the inline policy from each role."""
        self._delete_from_roles(request, request.properties["PolicyName"], request.properties["Roles"])

    def _delete_from_roles(self, request: ResourceRequest, policy_name: str, roles: Iterable[str]) -> None:
        for role in roles:
            request.get_client("iam").delete_role_policy(RoleName=role, PolicyName=policy_name)


class ManagedPolicyProvider(ResourceProvider):
    """AWS::IAM::ManagedPolicy."""

    is_immutable = True

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the managed policy and attach it to its roles."""
        iam = request.get_client("iam")
        policy = iam.create_policy(
            PolicyName=request.choose_name("ManagedPolicyName", 128),
            PolicyDocument=json.dumps(request.properties["PolicyDocument"]),
            **select_keys(request.properties, "Path", "Description"),
        )["Policy"]
        resource = request.record_partial(policy["Arn"], PolicyArn=policy["Arn"])
        for role in request.properties.get("Roles", ()):
            iam.attach_role_policy(RoleName=role, PolicyArn=policy["Arn"])
        return resource

    def delete(self, request: ResourceRequest) -> None:
        """Detach the managed policy and delete it."""
        iam = request.get_client("iam")
        for role in request.properties.get("Roles", ()):
            iam.detach_role_policy(RoleName=role, PolicyArn=request.physical_id)
        iam.delete_policy(PolicyArn=request.physical_id)


class InstanceProfileProvider(ConfiguredResourceProvider):
    """AWS::IAM::InstanceProfile."""

    create_only_properties = frozenset({"InstanceProfileName", "Path"})

    def create_unconfigured(self, request: ResourceRequest) -> PhysicalResource:
        """Create the instance profile without a role."""
        name, path = request.choose_name("InstanceProfileName", 128), select_keys(request.properties, "Path")
        profile = request.get_client("iam").create_instance_profile(InstanceProfileName=name, **path)
        return build_resource(name, Arn=profile["InstanceProfile"]["Arn"])

    def configure(self, request: ResourceRequest, physical_id: str) -> None:
        """Set or replace the role of the instance profile."""
        self._remove_roles(request, request.old_properties)
        for role in request.properties["Roles"]:
            request.get_client("iam").add_role_to_instance_profile(InstanceProfileName=physical_id, RoleName=role)

    def delete(self, request: ResourceRequest) -> None:
        """Remove the role and delete the instance profile."""
        self._remove_roles(request, request.properties)
        request.get_client("iam").delete_instance_profile(InstanceProfileName=request.physical_id)

    def _remove_roles(self, request: ResourceRequest, properties: Properties) -> None:
        iam = request.get_client("iam")
        for role in properties.get("Roles", ()):
            iam.remove_role_from_instance_profile(InstanceProfileName=request.physical_id, RoleName=role)


class AccessEntryProvider(PutResourceProvider):
    """AWS::EKS::AccessEntry."""

    create_only_properties = frozenset({"ClusterName", "PrincipalArn", "Type"})

    def write(self, request: ResourceRequest) -> PhysicalResource:
        """Write the access entry with its groups and policies; other associated policies are removed."""
        eks, properties = request.get_client("eks"), request.properties
        entry_key = {"clusterName": properties["ClusterName"], "principalArn": properties["PrincipalArn"]}
        settings = {"kubernetesGroups": properties.get("KubernetesGroups", [])}
        if "Username" in properties:
            settings["username"] = properties["Username"]
        physical_id = f"{properties['PrincipalArn']}|{properties['ClusterName']}"
        if request.physical_id:
            eks.update_access_entry(**entry_key, **settings)
        else:
            tags = {policy["Key"]: policy["Value"] for policy in properties.get("Tags", ())}
            eks.create_access_entry(**entry_key, **settings, type=properties.get("Type", "STANDARD"), tags=tags)
            request.record_partial(physical_id)
        scope_by_policy_arn = {tag["PolicyArn"]: tag["AccessScope"] for tag in properties.get("AccessPolicies", ())}
        for arn, scope in sorted(scope_by_policy_arn.items()):
            access_scope = {"type": scope["Type"], "namespaces": scope.get("Namespaces", [])}
            eks.associate_access_policy(**entry_key, policyArn=arn, accessScope=access_scope)
        for policy in eks.list_associated_access_policies(**entry_key)["associatedAccessPolicies"]:
            if policy["policyArn"] not in scope_by_policy_arn:
                eks.disassociate_access_policy(**entry_key, policyArn=policy["policyArn"])
        arn = eks.describe_access_entry(**entry_key)["accessEntry"]["accessEntryArn"]
        return build_resource(physical_id, AccessEntryArn=arn)

    def delete(self, request: ResourceRequest) -> None:
        """Delete the access entry."""
        cluster, principal = request.properties["ClusterName"], request.properties["PrincipalArn"]
        request.get_client("eks").delete_access_entry(clusterName=cluster, principalArn=principal)
