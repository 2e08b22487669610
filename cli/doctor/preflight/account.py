"""Reads the facts of a preflight: only reads, with the credentials of the user who deploys."""

import sys
from collections.abc import Iterator
from typing import Final

from cli.doctor.preflight.facts import DeploymentPermissions, PreflightFacts, ZoneFacts
from cli.doctor.preflight.runtime_versions import read_node_version
from cli.facts.cluster import query_or_unseen
from cli.facts.model import AccountFacts, DoctorFacts, ReadFailure
from cli.facts.role_permissions import list_denied_actions
from cli.terminal.stderr import show_progress
from shared.aws.clients import Clients
from shared.aws.errors import translate_errors
from shared.aws.on_demand_prices import get_pricing_region
from shared.errors import NotFound

BOOTSTRAP_PARAMETER: Final = "/cdk-bootstrap/hnb659fds/version"
SPOT_ROLE: Final = "AWSServiceRoleForEC2Spot"
DEPLOYMENT_ROLES: Final = ("deploy-role", "file-publishing-role")
"""Roles of the bootstrap stack that `npx cdk deploy` assumes."""
_BOOTSTRAP_ACTIONS: Final = (
    (
        ("cloudformation:CreateChangeSet", "cloudformation:ExecuteChangeSet"),
        "cloudformation:{region}:{account}:stack/CDKToolkit/*",
    ),
    (("iam:AttachRolePolicy", "iam:CreateRole", "iam:PutRolePolicy"), "iam::{account}:role/cdk-*"),
    (("s3:CreateBucket",), "s3:::cdk-hnb659fds-assets-{account}-{region}"),
    (("ecr:CreateRepository",), "ecr:{region}:{account}:repository/cdk-*"),
    (("ssm:PutParameter",), "ssm:{region}:{account}:parameter/cdk-bootstrap/*"),
)
"""Actions of `npx cdk bootstrap`, and the resource of each, without ``arn:PARTITION:``."""


def read_preflight_facts(clients: Clients, doctor_facts: DoctorFacts, account: AccountFacts) -> PreflightFacts:
    """Read what *doctor_facts* lack; a part that cannot be read becomes a `ReadFailure`."""
    caller = account.caller
    with show_progress(f"reading {clients.region}"):
        bootstrap_version = query_or_unseen(lambda: _read_bootstrap_version(clients))
        permissions = (
            caller
            if isinstance(caller, ReadFailure)
            else query_or_unseen(
                lambda: _read_permissions(clients, caller, is_bootstrapped=isinstance(bootstrap_version, int))
            )
        )
        return PreflightFacts(
            doctor=doctor_facts,
            account=account,
            bootstrap_version=bootstrap_version,
            has_spot_role=query_or_unseen(lambda: _has_role(clients, SPOT_ROLE)),
            zones=query_or_unseen(lambda: tuple(_list_zones(clients))),
            permissions=permissions,
            has_prices=query_or_unseen(lambda: _has_prices(clients)),
            node_version=read_node_version(),
            python_version=".".join(map(str, sys.version_info[:3])),
        )


def _read_bootstrap_version(clients: Clients) -> int | None:
    try:
        with translate_errors(f"ssm:GetParameter {BOOTSTRAP_PARAMETER}"):
            answer = clients.get_retrying_client("ssm").get_parameter(Name=BOOTSTRAP_PARAMETER)
    except NotFound:
        return None
    return int(answer["Parameter"]["Value"])


def _has_role(clients: Clients, name: str) -> bool:
    try:
        _get_role_arn(clients, name)
    except NotFound:
        return False
    return True


def _get_role_arn(clients: Clients, name: str) -> str:
    with translate_errors(f"iam:GetRole {name}"):
        return str(clients.get_retrying_client("iam").get_role(RoleName=name)["Role"]["Arn"])


def _list_zones(clients: Clients) -> Iterator[ZoneFacts]:
    with translate_errors("ec2:DescribeAvailabilityZones"):
        zones = clients.get_retrying_client("ec2").describe_availability_zones()["AvailabilityZones"]
    for zone in zones:
        kind = zone.get("ZoneType", "availability-zone")
        yield ZoneFacts(name=zone["ZoneName"], kind=kind, state=zone.get("State", "available"))


def _has_prices(clients: Clients) -> bool:
    client = clients.get_retrying_client("pricing", get_pricing_region(clients.get_session(), clients.region))
    filters = [{"Type": "TERM_MATCH", "Field": "regionCode", "Value": clients.region}]
    with translate_errors(f"pricing:GetProducts {clients.region}"):
        return bool(client.get_products(ServiceCode="AmazonEC2", Filters=filters, MaxResults=1)["PriceList"])


def _read_permissions(clients: Clients, caller: str, *, is_bootstrapped: bool) -> "DeploymentPermissions | ReadFailure":
    """Simulate the identity policies of *caller*, an ARN; policies of the organization and of roles are not included.

    Raises:
        Fault: a call was denied or not answered.
    """
    _, partition, _, _, account, resource = caller.split(":", 5)
    kind, _, name = resource.partition("/")
    if kind == "root":
        return DeploymentPermissions()
    if kind not in ("assumed-role", "user"):
        return ReadFailure(
            reason=f"IAM cannot simulate the policies of {caller}",
            fix="run `npx cdk deploy`: it reports what is denied",
        )
    principal = _get_role_arn(clients, name.partition("/")[0]) if kind == "assumed-role" else caller
    roles = [f"cdk-hnb659fds-{role}-{account}-{clients.region}" for role in DEPLOYMENT_ROLES]
    iam = f"arn:{partition}:iam::{account}:role"
    places = {"account": account, "region": clients.region}
    return DeploymentPermissions(
        unassumable_roles=tuple(
            role for role in roles if list_denied_actions(clients, principal, ("sts:AssumeRole",), f"{iam}/{role}")
        ),
        denied_bootstrap_actions=()
        if is_bootstrapped
        else tuple(
            denied
            for actions, target in _BOOTSTRAP_ACTIONS
            for denied in list_denied_actions(clients, principal, actions, f"arn:{partition}:{target.format(**places)}")
        ),
    )
