"""Checks of what the CDK and EC2 need in the account: bootstrap stack, permissions, Spot role, prices."""

from collections.abc import Iterator
from typing import Final

from cli.doctor.checks.finding import CheckReporter, CheckResult
from cli.doctor.checks.price_source import PARTITION_WITH_PRICES, find_partition_of
from cli.doctor.preflight.facts import PreflightFacts
from cli.facts.model import ReadFailure
from shared.model.core.formatting import join_names

MIN_BOOTSTRAP_VERSION: Final = 6
"""Version of the bootstrap stack that the template requires."""
CREATE_SPOT_ROLE_COMMAND: Final = "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
POLICIES: Final = "docs/guide/security.md#permissions-of-the-user-who-deploys"
MAX_LISTED_NAMES: Final = 5


def check_bootstrap(facts: PreflightFacts) -> Iterator[CheckResult]:
    """Check that the account and region are bootstrapped for the CDK, with a sufficient version."""
    version, check = facts.bootstrap_version, CheckReporter("bootstrap")
    cluster = facts.account.cluster or "NAME"
    environment = f"aws://{_get_account_id(facts) or 'ACCOUNT'}/{facts.account.region}"
    command = f"npx cdk bootstrap {environment} -c cluster={cluster}"
    if isinstance(version, ReadFailure):
        yield check.skip("the version of the CDK's bootstrap stack", version, "ssm:GetParameter")
    elif version is None:
        yield check.fail("the account and region are not bootstrapped for the CDK", command)
    elif version < MIN_BOOTSTRAP_VERSION:
        message = f"the bootstrap stack has version {version}; the deployment needs {MIN_BOOTSTRAP_VERSION}"
        yield check.fail(message, command)
    else:
        yield check.accept(f"the bootstrap stack has version {version}")


def check_deployment_permissions(facts: PreflightFacts) -> Iterator[CheckResult]:
    """Check the caller's permissions to deploy, as far as IAM can simulate them."""
    permissions, check = facts.permissions, CheckReporter("deployment")
    if isinstance(permissions, ReadFailure):
        needed = "iam:SimulatePrincipalPolicy and iam:GetRole"
        yield check.skip("your permissions to deploy", permissions, needed)
        return
    if permissions.denied_bootstrap_actions:
        names = join_names(permissions.denied_bootstrap_actions, MAX_LISTED_NAMES)
        yield check.fail(
            f"`npx cdk bootstrap` needs {names}, which your policies deny", f"add the policy of {POLICIES}"
        )
    if permissions.unassumable_roles:
        names = join_names(permissions.unassumable_roles, MAX_LISTED_NAMES)
        message = f"your policies deny sts:AssumeRole on {names}, which `npx cdk deploy` assumes"
        yield check.warn(message, f"add the policy of {POLICIES}")
    if not permissions.denied_bootstrap_actions and not permissions.unassumable_roles:
        yield check.accept("your policies allow the deployment (simulated; policies of the organization are not)")


def check_spot_role(facts: PreflightFacts) -> Iterator[CheckResult]:
    """Check that the service-linked role for Spot exists; fleets of type instant need no role of their own."""
    check = CheckReporter("spot-role")
    if isinstance(facts.has_spot_role, ReadFailure):
        yield check.skip("the service-linked role for Spot", facts.has_spot_role, "iam:GetRole")
    elif facts.has_spot_role:
        yield check.accept("the service-linked role for Spot exists")
    else:
        message = "the account has no service-linked role for Spot: Joiner launches on-demand instances only"
        yield check.warn(message, CREATE_SPOT_ROLE_COMMAND)


def check_price_list_api(facts: PreflightFacts) -> Iterator[CheckResult]:
    """Check that the AWS Price List API has prices for the region; other partitions need a file."""
    region, check = facts.account.region, CheckReporter("pricing")
    if find_partition_of(region) != PARTITION_WITH_PRICES:
        return
    if isinstance(facts.has_prices, ReadFailure):
        yield check.skip("the AWS Price List API", facts.has_prices, "pricing:GetProducts")
    elif facts.has_prices:
        yield check.accept(f"the AWS Price List API has prices of {region}")
    else:
        file = f"clusters/{facts.account.cluster}.yaml"
        fix = f"run `joiner catalog prices --region {region} -o FILE` and set `price-list: FILE` in {file}"
        yield check.fail(f"the AWS Price List API has no price of {region}", fix)


def _get_account_id(facts: PreflightFacts) -> str:
    caller = facts.account.caller
    return caller.split(":")[4] if isinstance(caller, str) and caller.count(":") > 4 else ""  # noqa: PLR2004
