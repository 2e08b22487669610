"""When the installer comes in a stack's life, and what it may do: the template says both."""

import json
from hashlib import sha256

import pytest

from infra.installer import manifests
from sim.lambdas.intrinsics import Resolver
from sim.lambdas.template import synthesised
from sim.lambdas.wiring import Wiring
from tests.infra.policies import Template, resources, roles, several, statements


@pytest.fixture(scope="module")
def template() -> Template:
    return synthesised()


def test_only_the_installer_is_an_administrator_and_may_do_nothing_else(template: Template) -> None:
    administrators = [one for one in resources(template, "AWS::EKS::AccessEntry").values() if "AccessPolicies" in one]
    [entry] = administrators
    [policy] = entry["AccessPolicies"]
    assert policy["PolicyArn"] == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    assert entry["PrincipalArn"] == Resolver(template).arn(roles(template)["installer"])
    actions = {
        name for function, one in statements(template) if function == "installer" for name in several(one["Action"])
    }
    assert actions == {"eks:DescribeCluster", "logs:CreateLogStream", "logs:PutLogEvents"}
    assert "KubernetesGroups" not in entry


def test_nobody_but_cloudformation_calls_the_installer(template: Template) -> None:
    [key] = [one for one in resources(template, "AWS::Lambda::Function") if one.startswith("FunctionsInstaller")]
    named = {Resolver(template).arn(key), Resolver(template).ref(key)}
    assert not [one for one in resources(template, "AWS::Lambda::Permission").values() if one["FunctionName"] in named]
    assert "installer" not in {mapping.function for mapping in Wiring.parse(template).mappings}
    called = {one["ServiceToken"] for kind in CUSTOM for one in resources(template, kind).values()}
    assert called == {f"{Resolver(template).arn(key)}:live"}


CUSTOM = ("Custom::JoinerInstalled", "Custom::JoinerEmptied")


def later_than(template: Template, kind: str) -> set[str]:
    """Answer what is made only after the custom resource of *kind*, and so deleted before it."""
    [key] = resources(template, kind)
    return {name for name, one in template["Resources"].items() if key in several(one.get("DependsOn", []))}


def earlier_than(template: Template, key: str) -> set[str]:
    """Answer all that *key* depends on, however far."""
    found: set[str] = set()
    seen = [key]
    while seen:
        one = template["Resources"][seen.pop()]
        said = set(several(one.get("DependsOn", []))) | {
            name
            for name in template["Resources"]
            if f'"Ref": "{name}"' in json.dumps(one) or f'["{name}", ' in json.dumps(one)
        }
        seen += sorted(said - found)
        found |= said
    return found


def test_the_installers_right_comes_before_it_and_nobody_else_is_let_in_or_woken_before(template: Template) -> None:
    [installed] = resources(template, "Custom::JoinerInstalled")
    later = later_than(template, "Custom::JoinerInstalled")
    entries = resources(template, "AWS::EKS::AccessEntry")
    functions = {key for key, one in entries.items() if "KubernetesGroups" in one}
    assert later >= functions
    assert later >= set(resources(template, "AWS::Scheduler::Schedule"))
    assert later >= set(resources(template, "AWS::Lambda::EventSourceMapping"))
    [own] = [key for key, one in entries.items() if "AccessPolicies" in one]
    earlier = earlier_than(template, installed)
    assert own in earlier
    assert not earlier & functions


def test_a_new_installer_is_at_work_before_any_other_function_is_renewed(template: Template) -> None:
    [installed] = resources(template, "Custom::JoinerInstalled")
    aliases = resources(template, "AWS::Lambda::Alias")
    [own] = [key for key in aliases if key.startswith("FunctionsInstaller")]
    assert own in earlier_than(template, installed)
    assert "UpdatePolicy" not in template["Resources"][own]  # at once: nobody else would notice what it does wrong
    assert later_than(template, "Custom::JoinerInstalled") >= aliases.keys() - {own}


def test_the_stack_is_emptied_while_everything_works(template: Template) -> None:
    [emptied] = resources(template, "Custom::JoinerEmptied")
    kinds = (
        "AWS::EKS::AccessEntry",
        "AWS::Lambda::Function",
        "AWS::Lambda::Alias",
        "AWS::Lambda::EventSourceMapping",
        "AWS::Scheduler::Schedule",
        "AWS::DynamoDB::Table",
        "AWS::S3::Bucket",
        "AWS::IAM::InstanceProfile",
        "AWS::IAM::Role",
        "AWS::IAM::Policy",
        "Custom::JoinerInstalled",
    )
    working = {key for kind in kinds for key in resources(template, kind)}
    assert working - earlier_than(template, emptied) == set()


def test_a_new_release_of_the_manifests_is_installed(template: Template) -> None:
    [one] = resources(template, "Custom::JoinerInstalled").values()
    assert one["Digest"] == sha256(manifests()).hexdigest()
    assert (one["Part"], one["OnDestroy"]) == ("installed", "keep")
    [other] = resources(template, "Custom::JoinerEmptied").values()
    [profile] = map(Resolver(template).ref, resources(template, "AWS::IAM::InstanceProfile"))
    assert (other["Part"], other["OnDestroy"], other["Profiles"]) == ("emptied", "keep", [profile])
