"""DryRun and placement groups over HTTP, where EC2 answers what the cloud model never says."""

from datetime import UTC, datetime

import msgspec
import pytest

from shared.aws.ec2.client import BotoEc2
from shared.aws.ec2.dry_run import build_dry_run_fleet_call, build_run_instances_call
from shared.aws.ec2.launch_template import build_launch_template_call
from shared.errors import Invalid, Unreachable
from shared.model.ec2.account import SelectorTerm
from shared.model.ec2.dry_run import DryRunRequest
from shared.model.ec2.launch_template import LaunchTemplate
from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock
from tests.contract.http_face import get_clients, get_embedded_aws

TEMPLATE = LaunchTemplate(name="joiner/1", image_id="ami-1", user_data="YQ==", security_group_ids=("sg-1",))
PROBE = DryRunRequest(template=TEMPLATE, instance_type="m5.large", subnet_ids=("subnet-1",))


def test_run_instances_call_contains_launch_template_data_and_no_empty_tags() -> None:
    call = build_run_instances_call(
        PROBE, build_launch_template_call(TEMPLATE, "us-east-1")["LaunchTemplateData"], "subnet-1"
    )
    assert (call["MinCount"], call["MaxCount"], call["InstanceType"], call["ImageId"]) == (1, 1, "m5.large", "ami-1")
    assert call["UserData"] == "a"
    assert call["NetworkInterfaces"] == [{"DeviceIndex": 0, "Groups": ["sg-1"], "SubnetId": "subnet-1"}]
    assert "TagSpecifications" not in call
    assert "TagSpecifications" not in build_dry_run_fleet_call(PROBE)
    assert "Context" not in build_dry_run_fleet_call(PROBE)


def test_tag_specifications_cover_all_resources_of_the_launch() -> None:
    tagged = msgspec.structs.replace(PROBE, template=msgspec.structs.replace(TEMPLATE, tags=(("a", "b"),)), context="c")
    data = build_launch_template_call(tagged.template, "us-east-1")["LaunchTemplateData"]
    kinds = [
        specification["ResourceType"]
        for specification in build_run_instances_call(tagged, data, "subnet-1")["TagSpecifications"]
    ]
    assert kinds == ["instance", "volume", "network-interface"]
    fleet = build_dry_run_fleet_call(tagged)
    assert [specification["ResourceType"] for specification in fleet["TagSpecifications"]] == [
        "instance",
        "volume",
        "fleet",
    ]
    assert fleet["Context"] == "c"


@pytest.mark.loopback
class TestOverHttp:
    @pytest.fixture
    def ec2(self) -> BotoEc2:
        get_embedded_aws().reset(Cloud(Clock()))
        return BotoEc2(get_clients(), lambda: datetime(2026, 11, 21, tzinfo=UTC))

    def test_missing_launch_template_in_create_fleet_is_not_a_denied_permission(self, ec2: BotoEc2) -> None:
        """It is not made for a question; that EC2 looked for it says that we may ask."""
        get_embedded_aws().inject_error("ec2", "CreateFleet", "InvalidLaunchTemplateName.NotFoundException", 400)
        assert "CreateFleet" not in [refusal.action for refusal in ec2.dry_run_launch(PROBE)]

    def test_lost_response_raises_unreachable(self, ec2: BotoEc2) -> None:
        get_embedded_aws().inject_error("ec2", "CreateFleet", "lost", 0)
        with pytest.raises(Unreachable):
            ec2.dry_run_launch(PROBE)

    @pytest.mark.parametrize("code", ["InvalidPlacementGroup.Unknown", "InvalidPlacementGroupId.NotFound"])
    def test_unknown_placement_group_is_none(self, ec2: BotoEc2, code: str) -> None:
        get_embedded_aws().inject_error("ec2", "DescribePlacementGroups", code, 400)
        assert ec2.describe_placement_group(SelectorTerm(id="pg-1")) is None

    def test_other_placement_group_error_raises_invalid(self, ec2: BotoEc2) -> None:
        get_embedded_aws().inject_error("ec2", "DescribePlacementGroups", "InvalidParameterValue", 400)
        with pytest.raises(Invalid):
            ec2.describe_placement_group(SelectorTerm(name="racks"))
