"""Placement of the functions in each mode of the network, and that they reach all services that they may call."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from infra.network.endpoints import GATEWAY_SERVICES, INTERFACE_SERVICES, REPORT_SERVICE
from infra.settings.load import load_options
from infra.settings.settings import StackOptions
from sim.authorization.template_policies import Template, get_resources, parse_function_policies
from sim.lambda_runtime.stack_template.generated_references import ACCOUNT_ID
from tests.infra.policies import as_list
from tests.infra.stacks import synthesize_stack

SUBNETS: Final = "subnet-0000000a,subnet-0000000b"
PRIVATE_SETTINGS: Final = {
    "network": "private",
    "subnets": SUBNETS,
    "vpc": "vpc-0000000a",
    "cluster-security-group": "sg-0000000c",
}
ENDPOINT_SETTINGS: Final = {
    "vpc-endpoints": "true",
    "vpc-cidrs": "10.0.0.0/16,fd00::/56",
    "route-tables": "rtb-0000000a,rtb-0000000b",
}
ISOLATED_SETTINGS: Final = {
    **PRIVATE_SETTINGS,
    **ENDPOINT_SETTINGS,
    "network": "isolated",
    "prefix-lists": "pl-0000000a,pl-0000000b",
}
SERVICES_NOT_CALLED: Final = {"logs": "Lambda writes the log in a function's name", "iam": "PassRole is no call"}
"""Services that policies name and that are not called from inside the VPC."""
PRICES: Final = {"region": "us-east-1", "pricedAt": "2026-11-21T08:00:00Z", "onDemand": {"m5.large": 0.096}}


def load_settings(**settings: str) -> StackOptions:
    return load_options({"cluster": "demo", **settings})


def synthesize_with_settings(folder: Path, settings: dict[str, str]) -> Template:
    (folder / "prices.json").write_text(json.dumps(PRICES))
    priced = {"price-list": str(folder / "prices.json")} if settings.get("network") == "isolated" else {}
    return synthesize_stack(str(folder), {**settings, **priced})


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return synthesize_with_settings(tmp_path_factory.mktemp("private"), PRIVATE_SETTINGS)


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return synthesize_with_settings(tmp_path_factory.mktemp("isolated"), ISOLATED_SETTINGS)


def list_called_services(template: Template) -> set[str]:
    """Return the services that the functions' policies name, without those that Lambda itself uses."""
    services = {
        action.partition(":")[0]
        for policy in parse_function_policies(template).values()
        for statement in policy
        for action in statement.actions
    }
    return services - SERVICES_NOT_CALLED.keys()


def get_endpoints(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    endpoints = get_resources(template, "AWS::EC2::VPCEndpoint").values()
    return {
        endpoint["ServiceName"].rpartition(".")[2]: endpoint
        for endpoint in endpoints
        if endpoint["VpcEndpointType"] == kind
    }


def list_rules(template: Template, group_prefix: str, direction: str) -> list[dict[str, Any]]:
    groups = get_resources(template, "AWS::EC2::SecurityGroup")
    [group] = [properties for key, properties in groups.items() if key.startswith(group_prefix)]
    listed: list[dict[str, Any]] = group[f"SecurityGroup{direction}"]
    return listed


def test_no_vpc_resources_are_created_without_a_vpc(tmp_path: Path) -> None:
    template = synthesize_with_settings(tmp_path, {})
    assert not {resource["Type"] for resource in template["Resources"].values()} & {
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::VPCEndpoint",
    }
    assert "pricing" in list_called_services(template)


def test_functions_run_in_the_configured_subnets_with_their_own_security_group(private: Template) -> None:
    [group] = list_group_ids(private)
    functions = private["Resources"].values()
    placed = [
        resource["Properties"]["VpcConfig"] for resource in functions if resource["Type"] == "AWS::Lambda::Function"
    ]
    inside = {"SubnetIds": SUBNETS.split(","), "SecurityGroupIds": [{"Fn::GetAtt": [group, "GroupId"]}]}
    assert placed == [inside] * len(placed)
    assert "pricing" in list_called_services(private)


def test_api_server_accepts_function_security_group_which_has_no_ingress(private: Template) -> None:
    [group] = get_resources(private, "AWS::EC2::SecurityGroup").values()
    assert "SecurityGroupIngress" not in group
    [entry] = [
        resource for resource in private["Resources"].values() if resource["Type"] == "AWS::EC2::SecurityGroupIngress"
    ]
    properties = entry["Properties"]
    assert (properties["GroupId"], properties["FromPort"], properties["ToPort"], properties["IpProtocol"]) == (
        "sg-0000000c",
        443,
        443,
        "tcp",
    )
    assert properties["SourceSecurityGroupId"] == {"Fn::GetAtt": [next(iter(list_group_ids(private))), "GroupId"]}


def list_group_ids(template: Template) -> list[str]:
    return [key for key, resource in template["Resources"].items() if resource["Type"] == "AWS::EC2::SecurityGroup"]


@pytest.mark.parametrize("mode", ["private", "isolated"])
def test_function_egress_is_limited_to_tls(mode: str, request: pytest.FixtureRequest) -> None:
    template: Template = request.getfixturevalue(mode)
    out = list_rules(template, "NetworkGroup", "Egress")
    assert {(rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) for rule in out} == {("tcp", 443, 443)}


def test_private_function_egress_is_api_server_and_nat(private: Template) -> None:
    assert [get_rule_target(rule) for rule in list_rules(private, "NetworkGroup", "Egress")] == [
        "sg-0000000c",
        "0.0.0.0/0",
    ]


def test_isolated_function_egress_is_vpc_and_gateway_endpoints(isolated: Template) -> None:
    out = [get_rule_target(rule) for rule in list_rules(isolated, "NetworkGroup", "Egress")]
    assert out == ["sg-0000000c", "10.0.0.0/16", "fd00::/56", "pl-0000000a", "pl-0000000b"]


def get_rule_target(rule: dict[str, Any]) -> str:
    kinds = ("DestinationSecurityGroupId", "DestinationPrefixListId", "CidrIp", "CidrIpv6")
    [destination] = [rule[kind] for kind in kinds if kind in rule]
    return str(destination)


def test_every_service_in_a_policy_has_a_vpc_endpoint(isolated: Template) -> None:
    assert list_called_services(isolated) == {*INTERFACE_SERVICES, *GATEWAY_SERVICES}
    assert get_endpoints(isolated, "Interface").keys() == set(INTERFACE_SERVICES)
    assert get_endpoints(isolated, "Gateway").keys() == set(GATEWAY_SERVICES)


def test_report_topic_adds_an_sns_endpoint(tmp_path: Path) -> None:
    template = synthesize_with_settings(
        tmp_path, {**ISOLATED_SETTINGS, "report-topic": f"arn:aws:sns:us-east-1:{ACCOUNT_ID}:costs"}
    )
    assert list_called_services(template) == {*INTERFACE_SERVICES, *GATEWAY_SERVICES, REPORT_SERVICE}
    assert get_endpoints(template, "Interface").keys() == {*INTERFACE_SERVICES, REPORT_SERVICE}


def test_every_service_without_an_endpoint_is_named_by_a_policy(isolated: Template) -> None:
    services = {
        action.partition(":")[0]
        for policy in parse_function_policies(isolated).values()
        for statement in policy
        for action in statement.actions
    }
    assert services >= SERVICES_NOT_CALLED.keys()


def test_vpc_endpoints_have_private_dns_and_accept_the_vpc(isolated: Template) -> None:
    for endpoint in get_endpoints(isolated, "Interface").values():
        assert endpoint["PrivateDnsEnabled"] is True
        assert endpoint["SubnetIds"] == SUBNETS.split(",")
    for endpoint in get_endpoints(isolated, "Gateway").values():
        assert endpoint["RouteTableIds"] == ["rtb-0000000a", "rtb-0000000b"]
    let_in = list_rules(isolated, "NetworkEndpointsGroup", "Ingress")
    assert [get_rule_target(rule) for rule in let_in] == ["10.0.0.0/16", "fd00::/56"]
    assert {(rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) for rule in let_in} == {("tcp", 443, 443)}


def test_vpc_endpoint_policies_allow_only_this_account(isolated: Template) -> None:
    for kind in ("Interface", "Gateway"):
        for service, endpoint in get_endpoints(isolated, kind).items():
            own_statement, *other_statements = endpoint["PolicyDocument"]["Statement"]
            expected_accounts = {"aws:PrincipalAccount": ACCOUNT_ID} | (
                {"aws:ResourceAccount": ACCOUNT_ID} if service == "s3" else {}
            )
            assert own_statement["Condition"] == {"StringEquals": expected_accounts}
            assert own_statement["Action"] == f"{service}:*"
            assert not other_statements or service == "s3"


def test_s3_endpoint_policy_allows_only_aws_owned_foreign_buckets(isolated: Template) -> None:
    _, *other_statements = get_endpoints(isolated, "Gateway")["s3"]["PolicyDocument"]["Statement"]
    assert {statement["Action"]: as_list(statement["Resource"]) for statement in other_statements} == {
        "s3:GetObject": [
            "arn:aws:s3:::al2023-repos-us-east-1-de612dc2/*",
            "arn:aws:s3:::prod-us-east-1-starport-layer-bucket/*",
        ],
        "s3:PutObject": ["arn:aws:s3:::cloudformation-custom-resource-response-useast1/*"],
    }


def test_functions_depend_on_their_network_resources(isolated: Template) -> None:
    kinds = {"AWS::EC2::SecurityGroupIngress", "AWS::EC2::VPCEndpoint"}
    ways = {key for key, resource in isolated["Resources"].items() if resource["Type"] in kinds}
    functions = [resource for resource in isolated["Resources"].values() if resource["Type"] == "AWS::Lambda::Function"]
    assert len(ways) == 7
    assert all(set(function["DependsOn"]) >= ways for function in functions)


def test_isolated_functions_use_the_packaged_price_list(isolated: Template) -> None:
    functions = get_resources(isolated, "AWS::Lambda::Function").values()
    environments = [properties["Environment"]["Variables"] for properties in functions]
    assert {environment["JOINER_PRICE_SERVICE"] for environment in environments} == {"unreachable"}
    assert {environment["JOINER_PRICE_LIST"] for environment in environments} == {"prices.json"}
    assert "pricing" not in list_called_services(isolated)


def test_isolated_network_with_given_endpoints_creates_none(tmp_path: Path) -> None:
    settings = {**PRIVATE_SETTINGS, "network": "isolated"}
    template = synthesize_with_settings(tmp_path, settings)
    assert not get_resources(template, "AWS::EC2::VPCEndpoint")
    assert [get_rule_target(rule) for rule in list_rules(template, "NetworkGroup", "Egress")] == [
        "sg-0000000c",
        "0.0.0.0/0",
    ]


def test_configured_security_groups_are_used_without_changes(tmp_path: Path) -> None:
    template = synthesize_with_settings(
        tmp_path, {"network": "private", "subnets": SUBNETS, "security-groups": "sg-0000000d"}
    )
    assert not list_group_ids(template)
    placed = [
        properties["VpcConfig"]["SecurityGroupIds"]
        for properties in get_resources(template, "AWS::Lambda::Function").values()
    ]
    assert placed == [["sg-0000000d"]] * len(placed)


@pytest.mark.parametrize("mode", ["private", "isolated"])
def test_cfn_lint_reports_no_findings(mode: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "template.json").write_text(json.dumps(request.getfixturevalue(mode)))
    command = [str(Path(sys.executable).with_name("cfn-lint")), "--ignore-checks", "W3005", "--", "template.json"]
    completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout) == (0, "")


@pytest.mark.parametrize(
    ("wrong", "error_pattern"),
    [
        ({"network": "hidden"}, "network is 'hidden': must be public or private or isolated"),
        ({"subnets": "subnet-00000001"}, "subnets is for functions inside a VPC"),
        ({"security-groups": "sg-00000001"}, "security-groups is for functions inside a VPC"),
        ({"vpc-cidrs": "10.0.0.0/8"}, "vpc-cidrs is for functions inside a VPC"),
        ({"vpc-endpoints": "true"}, "vpc-endpoints is true: set network to private or isolated"),
        ({"network": "private"}, "network is private: set subnets"),
        (
            {"network": "private", "subnets": "subnet-00000001"},
            "creates a security group: set vpc and cluster-security-group",
        ),
        (
            {**PRIVATE_SETTINGS, "security-groups": "sg-00000001"},
            "cluster-security-group is for the security group that the stack creates",
        ),
        (
            {**PRIVATE_SETTINGS, "vpc-endpoints": "true"},
            "is true: set vpc-cidrs and route-tables",
        ),
        (
            {**PRIVATE_SETTINGS, "route-tables": "rtb-00000001"},
            "route-tables has no effect without vpc-endpoints: true: remove it",
        ),
        ({**PRIVATE_SETTINGS, "prefix-lists": "pl-00000001"}, "prefix-lists is for network: isolated"),
        (
            {**PRIVATE_SETTINGS, "network": "isolated", "prefix-lists": "pl-00000001"},
            "prefix-lists restricts the connections of the functions: set vpc-cidrs",
        ),
        (
            {**PRIVATE_SETTINGS, "network": "isolated"},
            "no endpoint of the pricing service: price-list must name",
        ),
        ({"subnets": "a"}, "subnets has 'a': must be subnet-0123456789abcdef0"),
        ({"vpc": "vpc-00000001,"}, "vpc is 'vpc-00000001,': must be vpc-0123456789abcdef0"),
        ({"vpc-cidrs": "10.0.0.1/8"}, "vpc-cidrs: 10.0.0.1/8 has host bits set"),
        ({"vpc-cidrs": "::/0"}, "vpc-cidrs: ::/0 contains all addresses"),
    ],
)
def test_missing_or_conflicting_network_settings_are_rejected(wrong: dict[str, str], error_pattern: str) -> None:
    with pytest.raises(ValueError, match=error_pattern):
        load_settings(**wrong)
