"""Where the functions are in each mode of the network, and that they reach all that they may call."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from infra.endpoints import GATEWAYS, INTERFACES, TELLING
from infra.knobs import Knobs
from sim.lambdas.intrinsics import ACCOUNT
from tests.infra.policies import Template, policies, resources, several
from tests.infra.stacks import synthesis

SUBNETS: Final = "subnet-0000000a,subnet-0000000b"
INSIDE: Final = {
    "network": "private",
    "subnets": SUBNETS,
    "vpc": "vpc-0000000a",
    "cluster-security-group": "sg-0000000c",
}
MADE: Final = {
    "vpc-endpoints": "true",
    "vpc-cidrs": "10.0.0.0/16,fd00::/56",
    "route-tables": "rtb-0000000a,rtb-0000000b",
}
ISOLATED: Final = {**INSIDE, **MADE, "network": "isolated", "prefix-lists": "pl-0000000a,pl-0000000b"}
NOT_BY_CODE: Final = {"logs": "Lambda writes the log in a function's name", "iam": "PassRole is no call"}
"""Services that policies name and that are not called from inside the VPC."""
PRICES: Final = {"region": "us-east-1", "pricedAt": "2026-11-21T08:00:00Z", "onDemand": {"m5.large": 0.096}}


def knobs_of(**some: str) -> Knobs:
    return Knobs(**{name.replace("-", "_"): value for name, value in some.items()})  # type: ignore[arg-type]  # all str


def made(folder: Path, some: dict[str, str]) -> Template:
    (folder / "prices.json").write_text(json.dumps(PRICES))
    priced = {"price-list": str(folder / "prices.json")} if some.get("network") == "isolated" else {}
    return synthesis(str(folder), {f"joiner:{name}": value for name, value in {**some, **priced}.items()})


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return made(tmp_path_factory.mktemp("private"), INSIDE)


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return made(tmp_path_factory.mktemp("isolated"), ISOLATED)


def called(template: Template) -> set[str]:
    """Answer the services that the functions' policies name: of the network itself, what Lambda does is none."""
    named = {action.partition(":")[0] for each in policies(template).values() for one in each for action in one.actions}
    return named - NOT_BY_CODE.keys()


def endpoints(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    found = resources(template, "AWS::EC2::VPCEndpoint").values()
    return {one["ServiceName"].rpartition(".")[2]: one for one in found if one["VpcEndpointType"] == kind}


def rules(template: Template, which: str, direction: str) -> list[dict[str, Any]]:
    groups = resources(template, "AWS::EC2::SecurityGroup")
    [found] = [one for key, one in groups.items() if key.startswith(which)]
    listed: list[dict[str, Any]] = found[f"SecurityGroup{direction}"]
    return listed


def test_outside_a_vpc_nothing_of_it_is_made(tmp_path: Path) -> None:
    template = made(tmp_path, {})
    assert not {one["Type"] for one in template["Resources"].values()} & {
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::VPCEndpoint",
    }
    assert "pricing" in called(template)


def test_functions_are_in_the_subnets_with_a_group_of_their_own(private: Template) -> None:
    [group] = groups_of(private)
    functions = private["Resources"].values()
    placed = [one["Properties"]["VpcConfig"] for one in functions if one["Type"] == "AWS::Lambda::Function"]
    inside = {"SubnetIds": SUBNETS.split(","), "SecurityGroupIds": [{"Fn::GetAtt": [group, "GroupId"]}]}
    assert placed == [inside] * len(placed)
    assert "pricing" in called(private)


def test_the_api_server_lets_that_group_in_and_nothing_comes_to_it(private: Template) -> None:
    [group] = resources(private, "AWS::EC2::SecurityGroup").values()
    assert "SecurityGroupIngress" not in group
    [entry] = [one for one in private["Resources"].values() if one["Type"] == "AWS::EC2::SecurityGroupIngress"]
    said = entry["Properties"]
    assert (said["GroupId"], said["FromPort"], said["ToPort"], said["IpProtocol"]) == ("sg-0000000c", 443, 443, "tcp")
    assert said["SourceSecurityGroupId"] == {"Fn::GetAtt": [next(iter(groups_of(private))), "GroupId"]}


def groups_of(template: Template) -> list[str]:
    return [key for key, one in template["Resources"].items() if one["Type"] == "AWS::EC2::SecurityGroup"]


@pytest.mark.parametrize("mode", ["private", "isolated"])
def test_only_tls_leaves_the_functions(mode: str, request: pytest.FixtureRequest) -> None:
    template: Template = request.getfixturevalue(mode)
    out = rules(template, "NetworkGroup", "Egress")
    assert {(one["IpProtocol"], one["FromPort"], one["ToPort"]) for one in out} == {("tcp", 443, 443)}


def test_a_private_function_connects_to_the_api_server_and_through_the_nat(private: Template) -> None:
    assert [target(one) for one in rules(private, "NetworkGroup", "Egress")] == ["sg-0000000c", "0.0.0.0/0"]


def test_an_isolated_one_connects_to_the_vpc_and_the_gateways_only(isolated: Template) -> None:
    out = [target(one) for one in rules(isolated, "NetworkGroup", "Egress")]
    assert out == ["sg-0000000c", "10.0.0.0/16", "fd00::/56", "pl-0000000a", "pl-0000000b"]


def target(rule: dict[str, Any]) -> str:
    kinds = ("DestinationSecurityGroupId", "DestinationPrefixListId", "CidrIp", "CidrIpv6")
    [found] = [rule[kind] for kind in kinds if kind in rule]
    return str(found)


def test_there_is_an_endpoint_for_every_service_that_a_policy_names(isolated: Template) -> None:
    assert called(isolated) == {*INTERFACES, *GATEWAYS}
    assert endpoints(isolated, "Interface").keys() == set(INTERFACES)
    assert endpoints(isolated, "Gateway").keys() == set(GATEWAYS)


def test_whoever_is_told_of_costs_is_reached_too(tmp_path: Path) -> None:
    told = made(tmp_path, {**ISOLATED, "report-topic": f"arn:aws:sns:us-east-1:{ACCOUNT}:costs"})
    assert called(told) == {*INTERFACES, *GATEWAYS, TELLING}
    assert endpoints(told, "Interface").keys() == {*INTERFACES, TELLING}


def test_what_is_excused_is_named_by_a_policy(isolated: Template) -> None:
    named = {each.partition(":")[0] for some in policies(isolated).values() for one in some for each in one.actions}
    assert named >= NOT_BY_CODE.keys()


def test_endpoints_have_the_names_that_everybody_uses_and_are_open_to_the_vpc(isolated: Template) -> None:
    for one in endpoints(isolated, "Interface").values():
        assert one["PrivateDnsEnabled"] is True
        assert one["SubnetIds"] == SUBNETS.split(",")
    for one in endpoints(isolated, "Gateway").values():
        assert one["RouteTableIds"] == ["rtb-0000000a", "rtb-0000000b"]
    let_in = rules(isolated, "NetworkEndpointsGroup", "Ingress")
    assert [target(one) for one in let_in] == ["10.0.0.0/16", "fd00::/56"]
    assert {(one["IpProtocol"], one["FromPort"], one["ToPort"]) for one in let_in} == {("tcp", 443, 443)}


def test_an_endpoint_serves_this_account_only(isolated: Template) -> None:
    for kind in ("Interface", "Gateway"):
        for service, one in endpoints(isolated, kind).items():
            own, *others = one["PolicyDocument"]["Statement"]
            whose = {"aws:PrincipalAccount": ACCOUNT} | ({"aws:ResourceAccount": ACCOUNT} if service == "s3" else {})
            assert own["Condition"] == {"StringEquals": whose}
            assert own["Action"] == f"{service}:*"
            assert not others or service == "s3"


def test_of_other_accounts_only_buckets_of_aws_are_reached(isolated: Template) -> None:
    _, *others = endpoints(isolated, "Gateway")["s3"]["PolicyDocument"]["Statement"]
    assert {one["Action"]: several(one["Resource"]) for one in others} == {
        "s3:GetObject": [
            "arn:aws:s3:::al2023-repos-us-east-1-de612dc2/*",
            "arn:aws:s3:::prod-us-east-1-starport-layer-bucket/*",
        ],
        "s3:PutObject": ["arn:aws:s3:::cloudformation-custom-resource-response-us-east-1/*"],
    }


def test_functions_come_after_their_ways_out_and_go_before_them(isolated: Template) -> None:
    kinds = {"AWS::EC2::SecurityGroupIngress", "AWS::EC2::VPCEndpoint"}
    ways = {key for key, one in isolated["Resources"].items() if one["Type"] in kinds}
    functions = [one for one in isolated["Resources"].values() if one["Type"] == "AWS::Lambda::Function"]
    assert len(ways) == 7
    assert all(set(one["DependsOn"]) >= ways for one in functions)


def test_an_isolated_function_waits_for_no_pricing_service(isolated: Template) -> None:
    functions = resources(isolated, "AWS::Lambda::Function").values()
    said = [one["Environment"]["Variables"] for one in functions]
    assert {one["JOINER_PRICE_SERVICE"] for one in said} == {"unreachable"}
    assert {one["JOINER_PRICE_LIST"] for one in said} == {"prices.json"}
    assert "pricing" not in called(isolated)


def test_endpoints_that_are_there_already_are_not_made(tmp_path: Path) -> None:
    there = {**INSIDE, "network": "isolated"}
    template = made(tmp_path, there)
    assert not resources(template, "AWS::EC2::VPCEndpoint")
    assert [target(one) for one in rules(template, "NetworkGroup", "Egress")] == ["sg-0000000c", "0.0.0.0/0"]


def test_named_groups_are_used_as_they_are(tmp_path: Path) -> None:
    template = made(tmp_path, {"network": "private", "subnets": SUBNETS, "security-groups": "sg-0000000d"})
    assert not groups_of(template)
    placed = [one["VpcConfig"]["SecurityGroupIds"] for one in resources(template, "AWS::Lambda::Function").values()]
    assert placed == [["sg-0000000d"]] * len(placed)


@pytest.mark.parametrize("mode", ["private", "isolated"])
def test_cfn_lint_has_nothing_to_say(mode: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "template.json").write_text(json.dumps(request.getfixturevalue(mode)))
    command = [str(Path(sys.executable).with_name("cfn-lint")), "--ignore-checks", "W3005", "--", "template.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"network": "hidden"}, "joiner:network is 'hidden': want public or private or isolated"),
        ({"subnets": "subnet-00000001"}, "joiner:subnets is for functions inside a VPC"),
        ({"security-groups": "sg-00000001"}, "joiner:security-groups is for functions inside a VPC"),
        ({"vpc-cidrs": "10.0.0.0/8"}, "joiner:vpc-cidrs is for functions inside a VPC"),
        ({"vpc-endpoints": "true"}, "joiner:vpc-endpoints is true: want joiner:network private or isolated"),
        ({"network": "private"}, "joiner:network is private: joiner:subnets must be given"),
        (
            {"network": "private", "subnets": "subnet-00000001"},
            "the stack makes one: joiner:vpc and joiner:cluster-security-group must be given",
        ),
        (
            {**INSIDE, "security-groups": "sg-00000001"},
            "joiner:cluster-security-group is for a security group of the stack's",
        ),
        ({**INSIDE, "vpc-endpoints": "true"}, "is true: joiner:vpc-cidrs and joiner:route-tables must be given"),
        ({**INSIDE, "route-tables": "rtb-00000001"}, "joiner:route-tables is for joiner:vpc-endpoints=true"),
        ({**INSIDE, "prefix-lists": "pl-00000001"}, "joiner:prefix-lists is for joiner:network=isolated"),
        (
            {**INSIDE, "network": "isolated", "prefix-lists": "pl-00000001"},
            "joiner:prefix-lists bounds where functions may connect to: joiner:vpc-cidrs must be given",
        ),
        ({**INSIDE, "network": "isolated"}, "no endpoint leads to the pricing service: joiner:price-list must name"),
        ({"subnets": "a"}, "joiner:subnets is 'a': want subnet-0123456789abcdef0"),
        ({"vpc": "vpc-00000001,"}, "joiner:vpc is 'vpc-00000001,': want vpc-0123456789abcdef0"),
        ({"vpc-cidrs": "10.0.0.1/8"}, "joiner:vpc-cidrs: 10.0.0.1/8 has host bits set"),
        ({"vpc-cidrs": "::/0"}, "joiner:vpc-cidrs: ::/0 is everywhere"),
    ],
)
def test_what_is_missing_or_too_much_is_refused_at_once(wrong: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        knobs_of(**wrong)
