"""Launch templates: reused by content, collected when nobody uses them; and how few requests many claims are."""

import msgspec
import pytest

from shared.launch.groups import MAX_CLAIMS, plan_launches
from shared.launch.refusals import reason_of, remedy_of
from shared.launch.templates import UNUSED_FOR, unused
from shared.model.cluster import LaunchGroup
from shared.model.ec2 import FleetResult, LaunchTemplate
from shared.model.labels import MIN_VALUES_RELAXED
from sim.memory import LARGEST_ITEM
from tests.unit.launch_cases import NOW, claim, cluster, later, node_class

OURS = (("eks:eks-cluster-name", "c"),)
AGE = int(UNUSED_FOR.total_seconds())


def template(name: str = "joiner/c/1", tags: tuple[tuple[str, str], ...] = OURS, age: int = 600) -> LaunchTemplate:
    return LaunchTemplate(name=name, image_id="", user_data="", tags=tags, created_at=later(-age))


def using(one: LaunchTemplate, *, age: int, answered: bool) -> LaunchGroup:
    [launch] = plan_launches(cluster(claim("a"))).launches
    result = FleetResult(fleet_id="f") if answered else None
    return msgspec.structs.replace(launch.group, templates=(one,), created_at=later(-age), result=result)


@pytest.mark.parametrize(
    ("one", "groups", "gone"),
    [
        (template(), (), True),
        (template(age=AGE), (), False),
        (template(age=AGE + 1), (), True),
        (template(), (using(template(), age=AGE, answered=True),), False),
        (template(), (using(template(), age=AGE + 1, answered=True),), True),
        (template(), (using(template(), age=3600, answered=False),), False),
        (template("karpenter.k8s.aws/1"), (), False),
        (template("joiner/other/1"), (), False),
        (template(tags=()), (), False),
        (template(tags=(("eks:eks-cluster-name", "other"),)), (), False),
        (msgspec.structs.replace(template(), created_at=None), (), False),
    ],
    ids=[
        "old and unused",
        "new",
        "a little older",
        "used lately",
        "not used lately",
        "of a launch that has no answer",
        "Karpenter's",
        "another cluster's by name",
        "without our tag",
        "another cluster's by tag",
        "nobody knows how old",
    ],
)
def test_a_template_is_collected(one: LaunchTemplate, groups: tuple[LaunchGroup, ...], gone: bool) -> None:  # noqa: FBT001
    assert [action.name for action in unused([one], groups, "c", NOW)] == ([one.name] if gone else [])


def test_the_same_content_is_the_same_template() -> None:
    names = {
        one.name
        for some in (cluster(claim("a")), cluster(claim("b"), taken_at=later(60)))
        for launch in plan_launches(some).launches
        for one in launch.group.templates
    }
    other = plan_launches(cluster(claim("a"), node_classes=(node_class(detailed_monitoring=True),))).launches[0]
    assert len(names) == len(plan_launches(cluster(claim("a"))).launches[0].group.templates)
    assert names.isdisjoint(one.name for one in other.group.templates)


def test_a_thousand_equal_claims_are_two_requests_whose_rows_are_not_too_large() -> None:
    launches = plan_launches(cluster(*(claim(f"default-{number:05}") for number in range(1000)))).launches
    assert [one.group.request.capacity for one in launches] == [MAX_CLAIMS, MAX_CLAIMS]
    assert len({one.group.request.client_token for one in launches}) == 2
    assert max(len(msgspec.json.encode(one.group)) for one in launches) < LARGEST_ITEM / 2


def test_the_context_is_left_out_where_minimum_values_were_relaxed() -> None:
    classes = (node_class(context="ctx"),)
    relaxed = claim("a")
    notes = ((MIN_VALUES_RELAXED, "true"),)
    relaxed = msgspec.structs.replace(relaxed, meta=msgspec.structs.replace(relaxed.meta, annotations=notes))
    asked = [
        plan_launches(cluster(one, node_classes=classes)).launches[0].group.request for one in (claim("a"), relaxed)
    ]
    assert [one.context for one in asked] == ["ctx", ""]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted: no", "SpotSLRCreationFailed"),
        ("UnauthorizedOperation: Not authorized for images: [ami-1]", "AMIAuthorizationFailure"),
        ("AccessDenied: no", "Unauthorized"),
        ("InvalidAMIID.Malformed: x", "InvalidAMIID"),
        ("RequestLimitExceeded: later", "RequestLimitExceeded"),
        ("InternalError: oh", "InternalError"),
        ("InvalidParameterCombination: not eligible for Free Tier", "FreeTierIneligible"),
        ("InvalidLaunchTemplateId.NotFound: lt", "LaunchTemplateNotFound"),
        ("MaxSpotInstanceCountExceeded: x", "SpotQuotaExceeded"),
        ("VcpuLimitExceeded: x", "VCPULimitExceeded"),
        ("too few instances returned", "LaunchFailed"),
    ],
)
def test_a_reason_is_the_first_that_matches(words: str, reason: str) -> None:
    assert reason_of(words) == reason


def test_what_nobody_can_help_has_no_remedy() -> None:
    assert remedy_of("InternalError") == ""
