"""Refused calls on instances: a denial for an existing instance ends the run, one for a missing instance does not."""

import pytest

from shared.errors import Forbidden, NotFound
from shared.ports.aws import Ec2
from sim.authorization.access_checks import AccessControl, AccessDeniedError
from sim.cloud.open_answers import OpenAnswers
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.contract.asking import launch_instance
from tests.contract.memory_face import build_memory_face
from tests.support.actions_world import Outside

GONE = "i-0123456789abcdef0"
NAME_TAGS = (("Name", "n1"),)


def restrict(outside: Outside, answers: OpenAnswers) -> tuple[Ec2, AccessControl]:
    outside.cloud.set_open_answers(answers)
    access_control = AccessControl(synthesize_template(settings=ACTIVE_SETTINGS), outside.cloud)
    return access_control.restrict_world(outside.build_world(), "lifecycle").ec2, access_control


@pytest.mark.parametrize("denies_unseen", [True, False])
def test_denied_call_on_an_instance_of_another_cluster_ends_the_run_although_it_is_not_shown_yet(
    *, denies_unseen: bool
) -> None:
    outside = Outside()
    instance_id = launch_instance(build_memory_face(outside.cloud))
    ec2, access_control = restrict(outside, OpenAnswers(denies_unseen_instances=denies_unseen))
    with pytest.raises(AccessDeniedError, match=f"lifecycle lacks ec2:CreateTags on .*{instance_id}"):
        ec2.create_tags(instance_id, NAME_TAGS)
    assert len(access_control.denials) == 1


@pytest.mark.parametrize(("denies_unseen", "fault"), [(True, Forbidden), (False, NotFound)])
def test_call_on_a_missing_instance_gets_the_selected_answer_and_is_no_denial(
    *, denies_unseen: bool, fault: type[Exception]
) -> None:
    ec2, access_control = restrict(Outside(), OpenAnswers(denies_unseen_instances=denies_unseen))
    with pytest.raises(fault):
        ec2.create_tags(GONE, NAME_TAGS)
    assert access_control.denials == []
