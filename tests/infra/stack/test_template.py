"""The template, built once: each promise of the stack is an assertion about it."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from infra.settings.settings import StackOptions
from infra.stack.application import build_application
from shared.settings import Settings
from shared.stack_name import format_stack_name
from sim.authorization.template_policies import Template, get_resources, iterate_statements
from sim.lambda_runtime.stack_template.generated_references import IntrinsicResolver
from sim.lambda_runtime.stack_template.synthesis import synthesize_template
from sim.lambda_runtime.stack_wiring import StackWiring
from tests.infra.stacks import ALL, FOLLOWED_UP, TICKS, list_allowed_functions, synthesize_stack


def test_stack_has_six_functions_and_the_installer(wiring: StackWiring) -> None:
    assert {function.name for function in wiring.functions} == ALL


@pytest.mark.parametrize("reaction", ["tick", "watch", "logs"])
def test_watch_function_exists_only_if_the_reaction_setting_needs_it(reaction: str, tmp_path: Path) -> None:
    template = synthesize_stack(str(tmp_path), {"reaction": reaction})
    read = StackWiring.parse(template)
    assert {function.name for function in read.functions} == (ALL - {"watch"} if reaction == "tick" else ALL)
    if reaction != "tick":
        assert dict(read.get_function("watch").environment)["JOINER_REACTION"] == reaction
    ticks = {schedule.target.name: schedule.expression for schedule in read.schedules}
    assert ticks == {name: rate for name, rate in TICKS.items() if name != "watch" or reaction == "watch"}
    assert "watch" not in {
        function for function, document in iterate_statements(template) if "ec2:" in json.dumps(document["Action"])
    }
    subscribed = get_resources(template, "AWS::Logs::SubscriptionFilter").values()
    assert [(subscription["LogGroupName"], subscription["FilterPattern"]) for subscription in subscribed] == (
        [("/aws/eks/demo/cluster", '"Unable to schedule pod"')] if reaction == "logs" else []
    )


def test_every_function_runs_on_arm64_with_python_3_13(template: Template) -> None:
    for properties in get_resources(template, "AWS::Lambda::Function").values():
        assert (properties["Architectures"], properties["Runtime"]) == (["arm64"], "python3.13")


def test_only_functions_with_follow_up_queues_allow_recursive_loops(template: Template) -> None:
    """Lambda treats sixteen calls in a chain of messages as a loop, and drops later messages."""
    functions = get_resources(template, "AWS::Lambda::Function").values()
    allowed_to = {
        properties["Handler"].split(".")[1] for properties in functions if properties.get("RecursiveLoop") == "Allow"
    }
    assert allowed_to == FOLLOWED_UP


def test_the_node_role_trusts_ec2_under_the_name_of_the_partition(tmp_path: Path) -> None:
    """The principal is ``ec2.amazonaws.com``, in China ``ec2.amazonaws.com.cn``."""
    template = synthesize_stack(str(tmp_path), {"windows": "true"})
    trusts = [
        resource["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]["Principal"]["Service"]
        for key, resource in template["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role" and "NodesRole" in key
    ]
    assert trusts == [{"Fn::Join": ["", ["ec2.", {"Ref": "AWS::URLSuffix"}]]}] * 2


def test_a_cluster_name_with_an_underscore_has_a_stack(tmp_path: Path) -> None:
    clusters = [StackOptions(cluster="prod_eu"), StackOptions(cluster="prod-eu")]
    stacks = build_application(bundle=False, outdir=str(tmp_path), clusters=clusters).synth().stacks
    assert sorted(stack.stack_name for stack in stacks) == ["joiner-prod-eu", format_stack_name("prod_eu")]


DESCRIBED_TYPES = (
    *("AWS::Events::Rule", "AWS::IAM::Role", "AWS::Lambda::Function", "AWS::Lambda::LayerVersion"),
    "AWS::Scheduler::Schedule",
)


@pytest.mark.parametrize("kind", DESCRIBED_TYPES)
def test_resource_descriptions_start_with_joiner_and_state_the_purpose(
    kind: str, template: Template, private: Template
) -> None:
    for stack_template in (template, private):
        described = [properties.get("Description", "") for properties in get_resources(stack_template, kind).values()]
        assert described
        assert [
            description
            for description in described
            if not description.startswith("Joiner") or len(description.split()) < 4
        ] == []


def test_stack_has_only_the_outputs_that_people_read(template: Template, private: Template) -> None:
    assert sorted(template["Outputs"]) == ["Installed", "JoinerBucketName", "JoinerInstanceProfile"]
    assert private["Outputs"].keys() - template["Outputs"].keys() == {"WindowsInstanceProfile"}


def test_outputs_and_parameters_have_short_descriptions_and_no_exports(template: Template, private: Template) -> None:
    for stack_template in (template, private):
        entries = [entry for part in ("Outputs", "Parameters") for entry in stack_template[part].values()]
        word_counts = [len(entry.get("Description", "").split()) for entry in entries]
        assert [count for count in word_counts if not 4 <= count <= 20] == []
        assert [entry for entry in entries if "Export" in entry] == []


def test_functions_do_not_share_roles_or_log_groups(template: Template) -> None:
    functions = get_resources(template, "AWS::Lambda::Function").values()
    assert len({properties["Role"] for properties in functions}) == len(ALL)
    assert len({properties["LoggingConfig"]["LogGroup"] for properties in functions}) == len(ALL)


def test_log_groups_have_a_retention_period(template: Template, private: Template) -> None:
    assert {group["RetentionInDays"] for group in get_resources(template, "AWS::Logs::LogGroup").values()} == {30}
    assert {group["RetentionInDays"] for group in get_resources(private, "AWS::Logs::LogGroup").values()} == {7}


def test_function_timeout_is_shorter_than_its_schedule_interval(wiring: StackWiring) -> None:
    timeouts = {function.name: function.timeout for function in wiring.functions}
    assert all(timeouts[name] <= timedelta(seconds=55) for name, rate in TICKS.items() if rate == "rate(1 minute)")
    assert timeouts["catalog"] < timedelta(minutes=5)


def test_every_function_gets_its_settings_from_the_environment(template: Template, wiring: StackWiring) -> None:
    resolver = IntrinsicResolver(template)
    [table] = get_resources(template, "AWS::DynamoDB::Table")
    [bucket] = get_resources(template, "AWS::S3::Bucket")
    [profile] = get_resources(template, "AWS::IAM::InstanceProfile")
    for function in wiring.functions:
        assert Settings.from_environment(dict(function.environment)) == Settings(
            cluster_name="demo",
            region="us-east-1",
            table_name=resolver.resolve_ref(table),
            bucket_name=resolver.resolve_ref(bucket),
            queue_prefix=wiring.get_follow_up_prefix(),
            instance_profile=resolver.resolve_ref(profile),
            disruption="plan",
        )


def test_configured_setting_reaches_the_functions(private: Template) -> None:
    settings = Settings.from_environment(dict(StackWiring.parse(private).get_function("disrupt").environment))
    assert (settings.cluster_name, settings.mode) == ("prod", "plan")


def test_functions_run_in_a_vpc_only_if_configured(template: Template, private: Template) -> None:
    subnets = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
    inside = {"SubnetIds": subnets, "SecurityGroupIds": ["sg-0123456789abcdef0"]}
    assert not [p for p in get_resources(template, "AWS::Lambda::Function").values() if "VpcConfig" in p]
    assert [p["VpcConfig"] for p in get_resources(private, "AWS::Lambda::Function").values()] == [inside] * len(ALL)
    assert list_allowed_functions(template, "ec2:CreateNetworkInterface") == set()
    assert list_allowed_functions(private, "ec2:CreateNetworkInterface") == ALL


def test_dynamodb_table_is_on_demand_with_ttl_and_point_in_time_recovery(template: Template) -> None:
    [table] = get_resources(template, "AWS::DynamoDB::Table").values()
    assert [(key["AttributeName"], key["KeyType"]) for key in table["KeySchema"]] == [("pk", "HASH"), ("sk", "RANGE")]
    assert {attribute["AttributeType"] for attribute in table["AttributeDefinitions"]} == {"S"}
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_s3_bucket_is_versioned_encrypted_private_and_tls_only(template: Template) -> None:
    [bucket] = get_resources(template, "AWS::S3::Bucket").values()
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert bucket["BucketEncryption"]
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    [policy] = get_resources(template, "AWS::S3::BucketPolicy").values()
    assert "Deny" in [statement["Effect"] for statement in policy["PolicyDocument"]["Statement"]]


def test_journal_and_catalog_objects_expire_after_their_retention(template: Template) -> None:
    [bucket] = get_resources(template, "AWS::S3::Bucket").values()
    rules = bucket["LifecycleConfiguration"]["Rules"]
    expires = {rule["Prefix"]: rule["ExpirationInDays"] for rule in rules if "ExpirationInDays" in rule}
    assert expires == {"journal/": 30, "snapshot/": 7, "catalogue/": 30 + 90, "costs/": 400, "lists/": 1}


@pytest.mark.parametrize(("journal", "snapshot", "days"), [("30", "30", 30), ("3", "7", 3)])
def test_snapshots_expire_no_later_than_the_journal(journal: str, snapshot: str, days: int, tmp_path: Path) -> None:
    synthesized = synthesize_stack(str(tmp_path), {"journal-days": journal, "snapshot-days": snapshot})
    [bucket] = get_resources(synthesized, "AWS::S3::Bucket").values()
    expires = {rule.get("Prefix"): rule.get("ExpirationInDays") for rule in bucket["LifecycleConfiguration"]["Rules"]}
    assert (expires["snapshot/"], expires["journal/"]) == (days, int(journal))


def test_configured_price_list_is_packaged_with_its_date(tmp_path: Path, template: Template) -> None:
    listed = {"region": "us-gov-west-1", "pricedAt": "2026-11-21T08:00:00Z", "onDemand": {"m5.large": 0.1}}
    (tmp_path / "prices.json").write_text(json.dumps(listed))
    synthesized = synthesize_stack(str(tmp_path), {"price-list": str(tmp_path / "prices.json")})
    assert synthesized["Outputs"]["PackagedPrices"]["Value"] == "1 prices of us-gov-west-1, 2026-11-21"
    for kind, file_name in ((template, ""), (synthesized, "prices.json")):
        functions = get_resources(kind, "AWS::Lambda::Function").values()
        assert {properties["Environment"]["Variables"]["JOINER_PRICE_LIST"] for properties in functions} == {file_name}


@pytest.mark.parametrize("body", ["", "[]", '{"region": "us-east-1", "pricedAt": "soon", "onDemand": {}}', None])
def test_invalid_price_list_is_rejected_at_synthesis(body: str | None, tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    if body is not None:
        path.write_text(body)
    with pytest.raises(ValueError, match=r"price-list: .*prices.json is not a price list: .*catalog prices"):
        synthesize_stack(str(tmp_path), {"price-list": str(path)})


@pytest.mark.parametrize(("setting", "variable"), [("eu-central-1", "us-east-1"), ("", "eu-central-1")])
def test_price_list_of_another_region_is_rejected_at_synthesis(
    setting: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDK_DEFAULT_REGION", variable)
    path = tmp_path / "prices.json"
    path.write_text('{"region": "us-east-1", "pricedAt": "2026-11-21T08:00:00Z", "onDemand": {"m5.large": 0.1}}')
    message = r"has the prices of us-east-1, but the stack is for eu-central-1; .*prices --region eu-central-1 -o FILE"
    with pytest.raises(ValueError, match=message):
        synthesize_stack(str(tmp_path), {"price-list": str(path), "region": setting})


def test_simulator_wiring_is_parsed_from_this_template(wiring: StackWiring) -> None:
    assert StackWiring.parse(synthesize_template()) == wiring
