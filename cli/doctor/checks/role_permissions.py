"""Checks of permissions without which EC2 accepts a launch, but the node never becomes Ready."""

from collections.abc import Iterator

from cli.doctor.checks.finding import CheckReporter, CheckResult
from cli.facts.model import ControlPlane, DoctorFacts, ReadFailure


def check_default_key(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that `provision` can use the customer-managed key that encrypts new volumes of the account by default."""
    if facts.account is None:
        return
    permissions, check = facts.account.role_permissions, CheckReporter("ebs-encryption")
    if isinstance(permissions, ReadFailure):
        needed = "ec2:GetEbsEncryptionByDefault, ec2:GetEbsDefaultKmsKeyId and iam:SimulatePrincipalPolicy"
        yield check.skip("the default encryption of EBS volumes, and permissions of roles", permissions, needed)
        return
    key = permissions.default_key
    if permissions.denied_key_actions:
        yield check.fail(
            f"{key} encrypts new volumes, but the role of provision is denied "
            f"{', '.join(permissions.denied_key_actions)}: EC2 ends instances within seconds",
            f"deploy with the setting kms-keys: {key}, and let the key policy allow it",
        )
    elif key and facts.account.stack is None:
        yield check.warn(f"{key} encrypts new volumes of this account", f"deploy with the setting kms-keys: {key}")
    else:
        yield check.accept(
            f"{key} encrypts new volumes, and provision can use it"
            if key
            else "new volumes need no permission for a customer-managed KMS key"
        )


def check_ipv6(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that the roles of the nodes of an IPv6 cluster can assign addresses to pods."""
    plane = facts.account.control_plane if facts.account is not None else None
    if facts.account is None or not isinstance(plane, ControlPlane) or plane.ip_family != "ipv6":
        return
    check, permissions = CheckReporter("ipv6"), facts.account.role_permissions
    if isinstance(permissions, ReadFailure):
        yield check.skip("permissions of the node roles", permissions, "iam:SimulatePrincipalPolicy")
        return
    for role_arn in permissions.roles_without_ipv6:
        yield check.warn(
            f"{role_arn.rpartition('/')[2]} may not assign IPv6 addresses: unless the VPC CNI has a role of its own, "
            "nodes never become Ready",
            "deploy with the setting ip-family: ipv6, or add the IPv6 policy of the VPC CNI to the role",
        )
    if not permissions.roles_without_ipv6:
        yield check.accept("the cluster has IPv6 pods, and the node roles can assign addresses")
