"""Contract of EC2 instances, launch templates, images and the network, for every implementation of the cloud."""

from datetime import timedelta

import msgspec
import pytest

from shared.errors import NotFound, Throttled
from shared.model.ec2.account import Image, SelectorTerm
from shared.model.ec2.launch_template import LaunchTemplate
from tests.contract.asking import CLUSTER, DISCOVERY, TAGS, TEMPLATE_NAME, build_fleet_request, launch_instance
from tests.contract.memory_face import Face

ONE_MINUTE = timedelta(minutes=1)
UNKNOWN = "i-0aaaaaaaaaaaaaaaa"


def count_free_ips(aws: Face) -> int:
    return sum(subnet.available_ip_count for subnet in aws.ec2.describe_subnets(DISCOVERY))


def test_an_instance_is_pending_then_running(aws: Face) -> None:
    instance_id = launch_instance(aws)
    aws.cloud.clock.advance(timedelta(seconds=3))
    assert aws.ec2.describe_instance(instance_id).state == "pending"
    aws.cloud.clock.advance(ONE_MINUTE)
    assert aws.ec2.describe_instance(instance_id).state == "running"


def test_describe_instances_lags_behind_create_fleet(aws: Face) -> None:
    instance_id = launch_instance(aws)
    assert aws.ec2.describe_instances(CLUSTER) == ()
    with pytest.raises(NotFound):
        aws.ec2.describe_instance(instance_id)
    aws.cloud.clock.advance(timedelta(seconds=2))
    assert [instance.instance_id for instance in aws.ec2.describe_instances(CLUSTER)] == [instance_id]


def test_instance_has_its_zone_launch_time_security_groups_and_dns_name(aws: Face) -> None:
    began = aws.cloud.clock.get_time()
    instance_id = launch_instance(aws)
    aws.cloud.clock.advance(ONE_MINUTE)
    instance = aws.ec2.describe_instance(instance_id)
    groups = tuple(group.group_id for group in aws.ec2.describe_security_groups(DISCOVERY))
    assert instance.launched_at == began
    assert instance.provider_id == f"aws:///us-east-1a/{instance_id}"
    assert instance.security_group_ids == groups
    assert instance.private_dns_name.startswith("ip-10-0-")
    assert instance.private_dns_name.endswith(".ec2.internal")


def test_terminated_instance_is_described_for_an_hour(aws: Face) -> None:
    instance_id = launch_instance(aws)
    aws.cloud.clock.advance(ONE_MINUTE)
    aws.ec2.terminate_instances([instance_id])
    assert aws.ec2.describe_instance(instance_id).state == "shutting-down"
    assert len(aws.ec2.describe_instances(CLUSTER)) == 1
    aws.cloud.clock.advance(ONE_MINUTE)
    assert aws.ec2.describe_instance(instance_id).state == "terminated"
    assert aws.ec2.describe_instances(CLUSTER) == ()
    aws.cloud.clock.advance(timedelta(hours=1))
    with pytest.raises(NotFound):
        aws.ec2.describe_instance(instance_id)


def test_unknown_instance_id_does_not_prevent_termination_of_other_instances(aws: Face) -> None:
    instance_id = launch_instance(aws)
    aws.cloud.clock.advance(ONE_MINUTE)
    aws.ec2.terminate_instances([UNKNOWN, instance_id, UNKNOWN])
    assert aws.ec2.describe_instance(instance_id).state == "shutting-down"


def test_pending_instance_can_be_terminated(aws: Face) -> None:
    instance_id = launch_instance(aws)
    aws.cloud.clock.advance(timedelta(seconds=3))
    aws.ec2.terminate_instances([instance_id])
    aws.cloud.clock.advance(ONE_MINUTE)
    assert aws.ec2.describe_instance(instance_id).state == "terminated"


def test_instance_uses_a_subnet_address_until_it_terminates(aws: Face) -> None:
    before = count_free_ips(aws)
    instance_id = launch_instance(aws)
    assert count_free_ips(aws) == before - 1
    aws.ec2.terminate_instances([instance_id])
    aws.cloud.clock.advance(timedelta(minutes=2))
    assert count_free_ips(aws) == before


def test_instances_of_another_cluster_are_not_listed(aws: Face) -> None:
    launch_instance(aws)
    aws.cloud.clock.advance(ONE_MINUTE)
    assert aws.ec2.describe_instances("other") == ()


def test_instance_without_a_nodepool_tag_is_not_listed(aws: Face) -> None:
    aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", tags=TAGS[:1]))
    aws.cloud.clock.advance(ONE_MINUTE)
    assert aws.ec2.describe_instances(CLUSTER) == ()


def test_instances_are_listed_by_id(aws: Face) -> None:
    started = [launch_instance(aws, f"call {number}") for number in range(5)]
    aws.cloud.clock.advance(ONE_MINUTE)
    assert [instance.instance_id for instance in aws.ec2.describe_instances(CLUSTER)] == sorted(started)


def test_tags_are_added_and_overwritten(aws: Face) -> None:
    instance_id = launch_instance(aws)
    aws.cloud.clock.advance(ONE_MINUTE)
    aws.ec2.create_tags(instance_id, (("Name", "a"), ("karpenter.sh/nodeclaim", "default-1")))
    aws.ec2.create_tags(instance_id, (("Name", "b"),))
    instance = aws.ec2.describe_instance(instance_id)
    assert (instance.get_tag("Name"), instance.get_tag("karpenter.sh/nodeclaim")) == ("b", "default-1")


def test_tagging_an_unknown_instance_raises_not_found(aws: Face) -> None:
    with pytest.raises(NotFound):
        aws.ec2.create_tags(UNKNOWN, (("Name", "a"),))


def test_existing_launch_template_is_not_recreated(aws: Face) -> None:
    template = LaunchTemplate(name=TEMPLATE_NAME, image_id="ami-0bbbbbbbbbbbbbbbb", user_data="YQ==", tags=TAGS)
    aws.ec2.ensure_launch_template(template)
    templates = aws.ec2.describe_launch_templates(CLUSTER)
    aws.cloud.clock.advance(ONE_MINUTE)
    aws.ec2.ensure_launch_template(template)
    assert aws.ec2.describe_launch_templates(CLUSTER) == templates
    assert [(launch_template.name, launch_template.tags) for launch_template in templates] == [(TEMPLATE_NAME, TAGS)]
    assert templates[0].created_at == aws.cloud.clock.get_time() - ONE_MINUTE


def test_launch_templates_are_listed_by_name_and_cluster(aws: Face) -> None:
    for name, tags in (("b-template", TAGS), ("a-template", TAGS), ("other", (("eks:eks-cluster-name", "other"),))):
        aws.ec2.ensure_launch_template(LaunchTemplate(name=name, image_id="ami-0b", user_data="", tags=tags))
    assert [launch_template.name for launch_template in aws.ec2.describe_launch_templates(CLUSTER)] == [
        "a-template",
        "b-template",
    ]


def test_a_launch_template_can_be_deleted_twice(aws: Face) -> None:
    aws.ec2.ensure_launch_template(LaunchTemplate(name=TEMPLATE_NAME, image_id="ami-0b", user_data="", tags=TAGS))
    aws.ec2.delete_launch_template(TEMPLATE_NAME)
    aws.ec2.delete_launch_template(TEMPLATE_NAME)
    assert aws.ec2.describe_launch_templates(CLUSTER) == ()


def test_subnets_with_most_free_addresses_come_first(aws: Face) -> None:
    crowded = aws.ec2.describe_subnets(DISCOVERY)[0].subnet_id
    aws.cloud.network.get_subnet(crowded).set_free(7)
    subnets = aws.ec2.describe_subnets(DISCOVERY)
    assert [subnet.subnet_id for subnet in subnets[:-1]] == sorted(subnet.subnet_id for subnet in subnets[:-1])
    assert (subnets[-1].subnet_id, subnets[-1].available_ip_count) == (crowded, 7)
    assert sorted(subnet.zone for subnet in subnets) == ["us-east-1a", "us-east-1b", "us-east-1c"]
    assert sorted(subnet.zone_id for subnet in subnets) == ["use1-az1", "use1-az2", "use1-az3"]


@pytest.mark.parametrize(
    ("tags", "count"),
    [
        ((("tier", "web"),), 1),
        ((("tier", "*"),), 2),
        ((("tier", "w*b"),), 1),
        ((("tier", "web"), ("stage", "live")), 0),
        ((("tier", "*"), ("stage", "live")), 1),
        ((), 0),
    ],
)
def test_selector_term_requires_all_of_its_tags(aws: Face, tags: tuple[tuple[str, str], ...], count: int) -> None:
    aws.cloud.network.add_subnet("us-east-1a", (("tier", "web"),))
    aws.cloud.network.add_subnet("us-east-1b", (("stage", "live"), ("tier", "data")))
    assert len(aws.ec2.describe_subnets((SelectorTerm(tags=tags),))) == count


def test_selector_terms_are_combined_with_or(aws: Face) -> None:
    subnets = aws.ec2.describe_subnets(DISCOVERY)
    union = aws.ec2.describe_subnets(
        (*DISCOVERY, SelectorTerm(id=subnets[0].subnet_id), SelectorTerm(id="subnet-0aaaaaaaaaaaaaaaa"))
    )
    assert union == subnets


def test_security_groups_are_found_by_id_name_and_tags(aws: Face) -> None:
    web = aws.cloud.network.add_security_group("web-servers", (("tier", "web"),))
    data = aws.cloud.network.add_security_group("databases", (("tier", "data"),))
    terms = (
        SelectorTerm(id=web),
        SelectorTerm(name="web-*"),
        SelectorTerm(name="databases"),
        SelectorTerm(tags=(("tier", "web"),)),
    )
    group_ids = [[group.group_id for group in aws.ec2.describe_security_groups((term,))] for term in terms]
    assert group_ids == [[web], [web], [data], [web]]
    assert [group.group_id for group in aws.ec2.describe_security_groups(terms)] == sorted([web, data])


def add_image(aws: Face, name: str, age: timedelta, **tags: str) -> Image:
    """Add an image of our own and return it."""
    new_image = Image(
        image_id="",
        name=name,
        architecture="x86_64",
        created_at=aws.cloud.clock.get_time() - age,
        tags=tuple(sorted(tags.items())),
    )
    return msgspec.structs.replace(new_image, image_id=aws.cloud.images.add(new_image))


def test_images_are_listed_newest_first(aws: Face) -> None:
    old, new = add_image(aws, "golden-1", timedelta(days=2)), add_image(aws, "golden-2", timedelta(days=1))
    assert aws.ec2.describe_images((SelectorTerm(name="golden-*"),)) == (new, old)


def test_images_are_found_by_id_name_owner_and_tags(aws: Face) -> None:
    own_image = add_image(aws, "golden-1", ONE_MINUTE, stage="live")
    for term in (
        SelectorTerm(id=own_image.image_id),
        SelectorTerm(name="golden-1", owner="self"),
        SelectorTerm(tags=(("stage", "live"),)),
        SelectorTerm(name="golden-*", tags=(("stage", "*"),)),
    ):
        assert aws.ec2.describe_images((term,)) == (own_image,)
    for term in (
        SelectorTerm(name="golden-1", owner="amazon"),
        SelectorTerm(tags=(("stage", "test"),)),
        SelectorTerm(),
    ):
        assert aws.ec2.describe_images((term,)) == ()


def test_deprecated_image_is_still_found_with_its_deprecation_time(aws: Face) -> None:
    own_image = add_image(aws, "golden-1", ONE_MINUTE)
    at = aws.cloud.clock.get_time() - timedelta(seconds=1)
    aws.cloud.images.set_deprecation_time(own_image.image_id, at)
    assert aws.ec2.describe_images((SelectorTerm(id=own_image.image_id),))[0].deprecated_at == at


def test_throttled_create_fleet_launches_no_instance(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large")
    aws.cloud.rate_limiter.reject_next_calls("CreateFleet")
    with pytest.raises(Throttled):
        aws.ec2.create_fleet(fleet_request)
    aws.cloud.clock.advance(ONE_MINUTE)
    assert aws.ec2.describe_instances(CLUSTER) == ()


def test_instance_status_lists_failed_checks_and_scheduled_events(aws: Face) -> None:
    fine, broken, old = (launch_instance(aws, call) for call in ("fine", "broken", "old"))
    aws.cloud.clock.advance(ONE_MINUTE)
    since = aws.cloud.clock.get_time()
    for check in ("system", "instance"):
        aws.cloud.instances.set_status_check(broken, check)
    aws.cloud.schedule_maintenance([old])
    aws.cloud.clock.advance(ONE_MINUTE)
    statuses = {status.instance_id: status for status in aws.ec2.describe_instance_statuses()}
    assert list(statuses) == sorted({broken, old})
    assert fine not in statuses
    assert [(failed_check.kind, failed_check.since) for failed_check in statuses[broken].failed] == [
        ("instance", since),
        ("system", since),
    ]
    [event] = statuses[old].events
    assert (event.code, event.begins_at) == ("instance-retirement", since + timedelta(days=7))
    assert (statuses[broken].events, statuses[old].failed) == ((), ())


def test_recovered_instance_has_no_status_to_report(aws: Face) -> None:
    instance_id = launch_instance(aws)
    aws.cloud.clock.advance(ONE_MINUTE)
    aws.cloud.instances.set_status_check(instance_id, "instance")
    aws.cloud.schedule_maintenance([instance_id])
    aws.cloud.instances.set_status_check(instance_id, "instance", failing=False)
    aws.cloud.cancel_maintenance([instance_id])
    assert aws.ec2.describe_instance_statuses() == ()
