"""What EC2 and the nodes may do with the deployed roles: use keys of volumes, and assign IPv6 addresses."""

from threading import local

from moto.iam.models import iam_backends

from sim.aws_account.iam_checks.authorizer import IamAuthorizer
from sim.aws_account.identities import Caller
from sim.iam.service_requests import build_address_request, build_key_requests


class ServicePermissions:
    """The permissions with which EC2 launches instances, and those of the instances."""

    def __init__(self, authorizer: IamAuthorizer, region: str, account_id: str, deployer: Caller) -> None:
        """Decide with the policies that *authorizer* reads; calls without a role are those of *deployer*."""
        self._authorizer, self._region, self._account_id = authorizer, region, account_id
        self._deployer = deployer
        self._request = local()

    def set_caller(self, caller: Caller) -> None:
        """Set the caller of the request that the current thread handles."""
        self._request.caller = caller

    def can_launch_with_key(self, key: str) -> bool:
        """Return whether the caller of the current request can launch instances with volumes that *key* encrypts."""
        caller = getattr(self._request, "caller", self._deployer)
        requests = build_key_requests(key, self._region, self._account_id)
        return all(self._authorizer.is_allowed(caller, request) for request in requests)

    def can_assign_ipv6_addresses(self, profile: str) -> bool:
        """Return whether nodes with the instance profile *profile* can give pods IPv6 addresses.

        A profile that is not in the account has the permission.
        """
        profiles = list(iam_backends[self._account_id]["aws"].instance_profiles.values())
        arns = [role.arn for candidate in profiles if candidate.name == profile for role in candidate.roles]
        request = build_address_request(self._region, self._account_id)
        return all(self._authorizer.is_allowed(self._build_node(arn), request) for arn in arns)

    def _build_node(self, role_arn: str) -> Caller:
        role_name = role_arn.rpartition("/")[2]
        arn = f"arn:aws:sts::{self._account_id}:assumed-role/{role_name}/node"
        return Caller(arn=arn, user_id="AROANODE:node", role_arn=role_arn)
