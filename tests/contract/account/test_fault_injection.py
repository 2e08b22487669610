"""AWS Fault Injection Service in the emulated account: experiments that interrupt Spot instances."""

import json
from typing import Any

import pytest

from shared.model.ec2.account import SelectorTerm
from sim.aws_account.services.fault_injection import INTERRUPTION_ACTION
from tests.contract.account_stage import Json, Stage, get_error_code

pytestmark = pytest.mark.loopback

IMAGE = "/aws/service/eks/optimized-ami/{}/amazon-linux-2023/x86_64/standard/recommended/image_id"


def create_fis_role(stage: Stage, principal: str = "fis.amazonaws.com") -> str:
    """Create a role that *principal* can assume; return its ARN."""
    statement = {"Effect": "Allow", "Principal": {"Service": principal}, "Action": "sts:AssumeRole"}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    role = stage.get_client("iam").create_role(RoleName=principal.partition(".")[0], AssumeRolePolicyDocument=trust)
    return str(role["Role"]["Arn"])


def build_template(role_arn: str, instance_id: str, action_id: str = INTERRUPTION_ACTION) -> Json:
    arn = f"arn:aws:ec2:us-east-1:123456789012:instance/{instance_id}"
    action = {
        "actionId": action_id,
        "parameters": {"durationBeforeInterruption": "PT2M"},
        "targets": {"SpotInstances": "node"},
    }
    target = {"resourceType": "aws:ec2:spot-instance", "resourceArns": [arn], "selectionMode": "ALL"}
    return {
        "clientToken": f"token-{instance_id}",
        "description": "test",
        "roleArn": role_arn,
        "stopConditions": [{"source": "none"}],
        "targets": {"node": target},
        "actions": {"interrupt": action},
        "tags": {"Name": "test"},
    }


def launch_spot_instance(stage: Stage) -> str:
    """Launch one Spot instance; return its id."""
    ec2, cloud = stage.get_client("ec2"), stage.account.cloud
    [subnet, *_] = sorted(cloud.network.subnets)
    [group, *_] = cloud.network.select_security_groups((SelectorTerm(name="*"),))
    image = stage.get_client("ssm").get_parameter(Name=IMAGE.format(cloud.facts.version))["Parameter"]["Value"]
    interface = {"DeviceIndex": 0, "Groups": [group.group_id]}
    data = {"ImageId": image, "NetworkInterfaces": [interface]}
    ec2.create_launch_template(LaunchTemplateName="spot", LaunchTemplateData=data)
    specification = {"LaunchTemplateName": "spot", "Version": "$Latest"}
    overrides = [{"InstanceType": "m5.large", "SubnetId": subnet}]
    fleet: Any = ec2.create_fleet(
        Type="instant",
        LaunchTemplateConfigs=[{"LaunchTemplateSpecification": specification, "Overrides": overrides}],
        TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "spot"},
        SpotOptions={"AllocationStrategy": "price-capacity-optimized"},
    )
    return str(fleet["Instances"][0]["InstanceIds"][0])


def test_experiment_sends_an_interruption_warning_for_the_spot_instance(stage: Stage) -> None:
    fis, instance_id, events = stage.get_client("fis"), launch_spot_instance(stage), list[dict[str, Any]]()
    stage.account.cloud.events.subscribe(events.append)
    template = fis.create_experiment_template(**build_template(create_fis_role(stage), instance_id))
    template_id = template["experimentTemplate"]["id"]
    experiment = fis.start_experiment(experimentTemplateId=template_id)["experiment"]
    assert experiment["state"]["status"] == "running"
    assert fis.get_experiment(id=experiment["id"])["experiment"]["state"] == experiment["state"]
    warnings = [event for event in events if event["detail-type"] == "EC2 Spot Instance Interruption Warning"]
    assert [event["detail"]["instance-id"] for event in warnings] == [instance_id]


def test_experiment_without_a_spot_instance_fails(stage: Stage) -> None:
    fis = stage.get_client("fis")
    template = fis.create_experiment_template(**build_template(create_fis_role(stage), "i-0123456789abcdef0"))
    template_id = template["experimentTemplate"]["id"]
    state = fis.start_experiment(experimentTemplateId=template_id)["experiment"]["state"]
    assert state["status"] == "failed"
    assert "i-0123456789abcdef0" in state["reason"]


def test_experiment_template_with_a_repeated_token_is_created_once_and_can_be_deleted(stage: Stage) -> None:
    fis, call = stage.get_client("fis"), build_template(create_fis_role(stage), "i-1")
    ids = {fis.create_experiment_template(**call)["experimentTemplate"]["id"] for _ in range(2)}
    assert [item["id"] for item in fis.list_experiment_templates()["experimentTemplates"]] == list(ids)
    fis.delete_experiment_template(id=ids.pop())
    assert fis.list_experiment_templates()["experimentTemplates"] == []


def test_fis_rejects_other_actions_untrusted_roles_and_unknown_ids(stage: Stage) -> None:
    fis, role = stage.get_client("fis"), create_fis_role(stage)
    other_role = create_fis_role(stage, "ec2.amazonaws.com")
    create = fis.create_experiment_template
    missing = "ResourceNotFoundException"
    other_action = build_template(role, "i-1", "aws:ec2:stop-instances")
    assert get_error_code(lambda: create(**other_action)) == "ValidationException"
    assert get_error_code(lambda: create(**build_template(other_role, "i-1"))) == "ValidationException"
    assert get_error_code(lambda: fis.start_experiment(experimentTemplateId="EXT1")) == missing
    assert get_error_code(lambda: fis.get_experiment(id="EXP1")) == missing
    assert get_error_code(lambda: fis.delete_experiment_template(id="EXT1")) == missing
