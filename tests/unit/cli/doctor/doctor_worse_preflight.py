"""Facts of a preflight, and each of its problems: check, level, facts, parts of the message and of the fix."""

from typing import Any, Final

from cli.doctor.preflight.facts import DeploymentPermissions, PreflightFacts, ZoneFacts
from cli.facts.model import ReadFailure
from shared.model.ec2.account import Subnet
from tests.support.cli.doctor_facts import make_control_plane, make_node_class_facts, make_preflight_facts

UNREAD: Final = ReadFailure(reason="Forbidden: no", is_denied=True)
_ANSWERS: Final = make_node_class_facts().answers
TAGGED: Final = (_ANSWERS.subnets, _ANSWERS.security_groups)


def make_ready_facts(of_account: dict[str, Any] | None = None, **parts: Any) -> PreflightFacts:
    doctor_facts = make_preflight_facts(of_account=of_account)
    defaults: dict[str, Any] = {
        "doctor": doctor_facts,
        "account": doctor_facts.account,
        "bootstrap_version": 28,
        "has_spot_role": True,
        "zones": tuple(ZoneFacts(name=zone, kind="availability-zone", state="available") for zone in "ab"),
        "permissions": DeploymentPermissions(),
        "has_prices": True,
        "node_version": "22.20.0",
        "python_version": "3.13.1",
    }
    return PreflightFacts(**(defaults | parts))


def with_control_plane(**parts: Any) -> PreflightFacts:
    return make_ready_facts({"control_plane": make_control_plane(**parts)})


def with_subnets(*zones: str) -> PreflightFacts:
    subnets = tuple(Subnet(subnet_id=f"s-{zone}", zone=zone, zone_id=zone, available_ip_count=0) for zone in zones)
    return make_ready_facts({"discoverable": (subnets, TAGGED[1])})


TAG: Final = "--tags Key=karpenter.sh/discovery,Value=prod"
WORSE: Final[tuple[tuple[str, str, PreflightFacts, str, str], ...]] = (
    ("nodejs", "fail", make_ready_facts(node_version=""), "not on PATH", "install Node.js 22 or 24"),
    (
        "nodejs",
        "warn",
        make_ready_facts(node_version="20.20.2"),
        "20.20.2 is not supported",
        "install Node.js 22 or 24",
    ),
    ("nodejs", "warn", make_ready_facts(node_version="23.1.0"), "23.1.0 is not supported", "install Node.js 22 or 24"),
    (
        "bootstrap",
        "fail",
        make_ready_facts({"caller": "arn:aws:iam::111122223333:user/me"}, bootstrap_version=None),
        "not bootstrapped",
        "npx cdk bootstrap aws://111122223333/us-east-1",
    ),
    (
        "bootstrap",
        "fail",
        make_ready_facts(bootstrap_version=5),
        "version 5; the deployment needs 6",
        "npx cdk bootstrap",
    ),
    (
        "bootstrap",
        "fail",
        make_ready_facts({"caller": UNREAD}, bootstrap_version=None),
        "not bootstrapped",
        "aws://ACCOUNT/",
    ),
    ("bootstrap", "unseen", make_ready_facts(bootstrap_version=UNREAD), "Forbidden: no", "ssm:GetParameter"),
    (
        "deployment",
        "warn",
        make_ready_facts(permissions=DeploymentPermissions(unassumable_roles=("cdk-deploy",))),
        "deny sts:AssumeRole on cdk-deploy",
        "docs/guide/security.md#permissions-of-the-user-who-deploys",
    ),
    (
        "deployment",
        "fail",
        make_ready_facts(permissions=DeploymentPermissions(denied_bootstrap_actions=("iam:CreateRole",))),
        "`npx cdk bootstrap` needs iam:CreateRole",
        "docs/guide/security.md",
    ),
    (
        "deployment",
        "unseen",
        make_ready_facts(permissions=UNREAD),
        "cannot be read: Forbidden",
        "iam:SimulatePrincipalPolicy",
    ),
    ("spot-role", "warn", make_ready_facts(has_spot_role=False), "on-demand", "--aws-service-name spot.amazonaws.com"),
    ("spot-role", "unseen", make_ready_facts(has_spot_role=UNREAD), "service-linked role", "iam:GetRole"),
    ("pricing", "fail", make_ready_facts(has_prices=False), "no price of us-east-1", "clusters/prod.yaml"),
    ("pricing", "unseen", make_ready_facts(has_prices=UNREAD), "Price List API", "pricing:GetProducts"),
    ("prices", "later", make_ready_facts({"region": "us-gov-west-1"}), "needs a price list", "joiner catalog prices"),
    ("version", "fail", with_control_plane(version="1.28"), "older than 1.29", "--kubernetes-version 1.29, one minor"),
    ("version", "unseen", with_control_plane(version=""), "EKS returned none", ""),
    ("authentication", "fail", with_control_plane(authentication_mode="CONFIG_MAP"), "aws-auth", "API_AND_CONFIG_MAP"),
    (
        "endpoint",
        "warn",
        with_control_plane(public_cidrs=("203.0.113.0/24",), vpc_id="vpc-1"),
        "restricted to 203.0.113.0/24: functions outside a VPC have no fixed address",
        "set `network: private`, `vpc: vpc-1`, `cluster-security-group: sg-cluster` and `subnets:` with subnet-1",
    ),
    (
        "endpoint",
        "warn",
        with_control_plane(public_cidrs=("203.0.113.0/24",), is_private=False),
        "restricted",
        "run `aws eks update-cluster-config --name prod --resources-vpc-config endpointPrivateAccess=true`, then set",
    ),
    ("endpoint", "warn", with_control_plane(is_public=False), "only a private endpoint", "`network: isolated`"),
    (
        "discovery",
        "fail",
        make_ready_facts({"discoverable": ((), TAGGED[1])}),
        "no subnet has the tag karpenter.sh/discovery=prod",
        f"aws ec2 create-tags --region us-east-1 --resources subnet-1 subnet-2 {TAG}",
    ),
    (
        "discovery",
        "fail",
        make_ready_facts({"discoverable": (TAGGED[0], ())}),
        "no security group has the tag",
        f"--resources sg-cluster {TAG}",
    ),
    (
        "discovery",
        "unseen",
        make_ready_facts({"discoverable": UNREAD}),
        "karpenter.sh/discovery=prod",
        "ec2:DescribeSubnets",
    ),
    ("subnets", "fail", with_subnets("a", "b"), "no subnet has a free address", "CIDR"),
    (
        "zones",
        "warn",
        make_ready_facts(zones=(ZoneFacts(name="a", kind="local-zone", state="available"),)),
        "a is a local zone",
        "remove the tag",
    ),
    (
        "zones",
        "warn",
        make_ready_facts(zones=(ZoneFacts(name="b", kind="availability-zone", state="impaired"),)),
        "b is impaired",
        "other subnets",
    ),
    ("zones", "unseen", make_ready_facts(zones=UNREAD), "zones of the subnets", "ec2:DescribeAvailabilityZones"),
)
