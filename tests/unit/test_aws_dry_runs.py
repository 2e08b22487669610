"""DryRun and placement groups over HTTP, where EC2 answers what the cloud model never says."""

from datetime import UTC, datetime

import msgspec
import pytest

from shared.aws.ec2 import BotoEc2
from shared.aws.ec2_dry_runs import fleet_probe, run_call
from shared.aws.ec2_templates import launch_template_call
from shared.errors import Invalid, Unreachable
from shared.model.ec2 import LaunchTemplate, Probe, Selector
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from tests.contract.http_face import clients, embedded_aws

TEMPLATE = LaunchTemplate(name="joiner/1", image_id="ami-1", user_data="YQ==", security_group_ids=("sg-1",))
PROBE = Probe(template=TEMPLATE, instance_type="m5.large", subnet_ids=("subnet-1",))


def test_run_instances_says_what_the_template_says_and_no_tags_where_there_are_none() -> None:
    call = run_call(PROBE, launch_template_call(TEMPLATE, "us-east-1")["LaunchTemplateData"], "subnet-1")
    assert (call["MinCount"], call["MaxCount"], call["InstanceType"], call["ImageId"]) == (1, 1, "m5.large", "ami-1")
    assert call["UserData"] == "a"
    assert call["NetworkInterfaces"] == [{"DeviceIndex": 0, "Groups": ["sg-1"], "SubnetId": "subnet-1"}]
    assert "TagSpecifications" not in call
    assert "TagSpecifications" not in fleet_probe(PROBE)
    assert "Context" not in fleet_probe(PROBE)


def test_tags_are_on_all_that_would_be_made() -> None:
    tagged = msgspec.structs.replace(PROBE, template=msgspec.structs.replace(TEMPLATE, tags=(("a", "b"),)), context="c")
    data = launch_template_call(tagged.template, "us-east-1")["LaunchTemplateData"]
    kinds = [one["ResourceType"] for one in run_call(tagged, data, "subnet-1")["TagSpecifications"]]
    assert kinds == ["instance", "volume", "network-interface"]
    fleet = fleet_probe(tagged)
    assert [one["ResourceType"] for one in fleet["TagSpecifications"]] == ["instance", "volume", "fleet"]
    assert fleet["Context"] == "c"


@pytest.mark.loopback
class TestOverHttp:
    @pytest.fixture
    def ec2(self) -> BotoEc2:
        embedded_aws().reset(Cloud(Clock()))
        return BotoEc2(clients(), lambda: datetime(2026, 11, 21, tzinfo=UTC))

    def test_a_template_that_fleets_miss_is_no_refusal(self, ec2: BotoEc2) -> None:
        """It is not made for a question; that EC2 looked for it says that we may ask."""
        embedded_aws().fail_next("ec2", "CreateFleet", "InvalidLaunchTemplateName.NotFoundException", 400)
        assert "CreateFleet" not in [one.action for one in ec2.refusals(PROBE)]

    def test_an_answer_that_does_not_come_is_no_refusal(self, ec2: BotoEc2) -> None:
        embedded_aws().fail_next("ec2", "CreateFleet", "lost", 0)
        with pytest.raises(Unreachable):
            ec2.refusals(PROBE)

    @pytest.mark.parametrize("code", ["InvalidPlacementGroup.Unknown", "InvalidPlacementGroupId.NotFound"])
    def test_a_group_that_ec2_does_not_know_is_none(self, ec2: BotoEc2, code: str) -> None:
        embedded_aws().fail_next("ec2", "DescribePlacementGroups", code, 400)
        assert ec2.placement_group(Selector(id="pg-1")) is None

    def test_another_refusal_is_told(self, ec2: BotoEc2) -> None:
        embedded_aws().fail_next("ec2", "DescribePlacementGroups", "InvalidParameterValue", 400)
        with pytest.raises(Invalid):
            ec2.placement_group(Selector(name="racks"))
