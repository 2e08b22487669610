"""The installer's order in the deployment and its permissions, according to the template."""

import json
from hashlib import sha256

import pytest

from infra.functions.installer import build_manifests
from sim.authorization.template_policies import Template, get_resources, iterate_statements, map_function_roles
from sim.lambda_runtime.stack_template.generated_references import IntrinsicResolver
from sim.lambda_runtime.stack_template.synthesis import synthesize_template
from sim.lambda_runtime.stack_wiring import StackWiring
from tests.infra.policies import as_list


@pytest.fixture(scope="module")
def template() -> Template:
    return synthesize_template()


def test_only_the_installer_is_cluster_admin_and_has_no_other_permissions(template: Template) -> None:
    administrators = [
        access_entry
        for access_entry in get_resources(template, "AWS::EKS::AccessEntry").values()
        if "AccessPolicies" in access_entry
    ]
    [entry] = administrators
    [policy] = entry["AccessPolicies"]
    assert policy["PolicyArn"] == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    assert entry["PrincipalArn"] == IntrinsicResolver(template).get_arn(map_function_roles(template)["installer"])
    actions = {
        name
        for function, policy_statement in iterate_statements(template)
        if function == "installer"
        for name in as_list(policy_statement["Action"])
    }
    assert actions == {"eks:DescribeCluster", "logs:CreateLogStream", "logs:PutLogEvents"}
    assert "KubernetesGroups" not in entry


def test_installer_is_invoked_only_by_cloudformation(template: Template) -> None:
    [key] = [
        logical_id
        for logical_id in get_resources(template, "AWS::Lambda::Function")
        if logical_id.startswith("FunctionsInstaller")
    ]
    installer_names = {IntrinsicResolver(template).get_arn(key), IntrinsicResolver(template).resolve_ref(key)}
    assert not [
        permission
        for permission in get_resources(template, "AWS::Lambda::Permission").values()
        if permission["FunctionName"] in installer_names
    ]
    assert "installer" not in {mapping.function for mapping in StackWiring.parse(template).mappings}
    function_arns = {
        resource["ServiceToken"]
        for kind in CUSTOM_RESOURCE_TYPES
        for resource in get_resources(template, kind).values()
    }
    assert function_arns == {f"{IntrinsicResolver(template).get_arn(key)}:live"}


CUSTOM_RESOURCE_TYPES = ("Custom::JoinerInstalled", "Custom::JoinerEmptied")


def list_later_resources(template: Template, kind: str) -> set[str]:
    """Return the resources that are created after the custom resource of *kind*, and so deleted before it."""
    [key] = get_resources(template, kind)
    return {name for name, resource in template["Resources"].items() if key in as_list(resource.get("DependsOn", []))}


def list_earlier_resources(template: Template, key: str) -> set[str]:
    """Return all resources that *key* depends on, directly or indirectly."""
    earlier: set[str] = set()
    pending = [key]
    while pending:
        resource = template["Resources"][pending.pop()]
        dependencies = set(as_list(resource.get("DependsOn", []))) | {
            name
            for name in template["Resources"]
            if f'"Ref": "{name}"' in json.dumps(resource) or f'["{name}", ' in json.dumps(resource)
        }
        pending += sorted(dependencies - earlier)
        earlier |= dependencies
    return earlier


def test_installer_access_entry_is_created_before_it_and_functions_start_after_it(template: Template) -> None:
    [installed] = get_resources(template, "Custom::JoinerInstalled")
    later = list_later_resources(template, "Custom::JoinerInstalled")
    entries = get_resources(template, "AWS::EKS::AccessEntry")
    functions = {key for key, access_entry in entries.items() if "KubernetesGroups" in access_entry}
    assert later >= functions
    assert later >= set(get_resources(template, "AWS::Scheduler::Schedule"))
    assert later >= set(get_resources(template, "AWS::Lambda::EventSourceMapping"))
    [own_entry] = [key for key, access_entry in entries.items() if "AccessPolicies" in access_entry]
    earlier = list_earlier_resources(template, installed)
    assert own_entry in earlier
    assert not earlier & functions


def test_an_access_entry_is_created_long_after_its_role(template: Template, private: Template) -> None:
    """EKS rejects a role that IAM has not propagated yet: a function and the installation come between them."""
    for stack in (template, private):
        [installed] = get_resources(stack, "Custom::JoinerInstalled")
        functions = set(get_resources(stack, "AWS::Lambda::Function"))
        for key, access_entry in get_resources(stack, "AWS::EKS::AccessEntry").items():
            earlier = list_earlier_resources(stack, key)
            assert earlier & functions, key
            assert installed in earlier or "AccessPolicies" in access_entry, key


def test_installer_is_updated_before_all_other_functions(template: Template) -> None:
    [installed] = get_resources(template, "Custom::JoinerInstalled")
    aliases = get_resources(template, "AWS::Lambda::Alias")
    [installer_alias] = [key for key in aliases if key.startswith("FunctionsInstaller")]
    assert installer_alias in list_earlier_resources(template, installed)
    assert (
        "UpdatePolicy" not in template["Resources"][installer_alias]
    )  # immediately: nothing else would detect a faulty installer
    assert list_later_resources(template, "Custom::JoinerInstalled") >= aliases.keys() - {installer_alias}


def test_stack_is_emptied_before_any_other_resource_is_deleted(template: Template) -> None:
    [emptied] = get_resources(template, "Custom::JoinerEmptied")
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
    working = {key for kind in kinds for key in get_resources(template, kind)}
    assert working - list_earlier_resources(template, emptied) == set()


def test_changed_manifests_trigger_a_new_installation(template: Template) -> None:
    [installed] = get_resources(template, "Custom::JoinerInstalled").values()
    assert installed["Digest"] == sha256(build_manifests()).hexdigest()
    assert (installed["Part"], installed["OnDestroy"]) == ("installed", "keep")
    assert "ClusterObjects" not in installed
    [emptied] = get_resources(template, "Custom::JoinerEmptied").values()
    [profile] = map(IntrinsicResolver(template).resolve_ref, get_resources(template, "AWS::IAM::InstanceProfile"))
    assert (emptied["Part"], emptied["OnDestroy"], emptied["Profiles"]) == ("emptied", "keep", [profile])


def test_external_cluster_objects_change_one_property_of_the_stack() -> None:
    # Cached templates may contain the digests of earlier versions of the code.
    template = synthesize_template(cache=False)
    external = synthesize_template(cache=False, settings={"cluster-objects": "external"})
    [key] = get_resources(template, "Custom::JoinerInstalled")
    assert external["Resources"][key]["Properties"].pop("ClusterObjects") == "external"
    assert external == template
