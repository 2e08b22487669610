"""Answers that AWS's documentation leaves open: the seed selects one of them, and the product must live with each."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from shared.errors import NotFound
from sim.cloud import open_answers
from sim.cloud.cloud import Cloud
from sim.cloud.open_answers import OpenAnswers, draw_open_answers
from sim.fault_simulation.drawing.draw_script import draw_brief_script, draw_script
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.events.script import ScriptSetup
from sim.time.virtual_clock import Clock
from tests.contract.asking import build_fleet_request, launch_instance
from tests.contract.memory_face import Face, build_memory_face

LAG = timedelta(seconds=10)
ANSWER_FIELDS = [field.name for field in msgspec.structs.fields(OpenAnswers) if field.type is bool]
FAULTS_PAGE = Path(__file__).parents[4] / "docs/faults.md"


def build_face(answers: OpenAnswers) -> Face:
    cloud = Cloud(Clock(), describe_lag=LAG)
    cloud.set_open_answers(answers)
    return build_memory_face(cloud)


def test_by_default_aws_answers_as_a_client_hopes() -> None:
    aws = build_face(OpenAnswers())
    request = build_fleet_request(aws, "m5.large")
    first = aws.ec2.create_fleet(request)
    aws.cloud.clock.advance(LAG)
    assert all(aws.ec2.describe_instance(first.instances[0].instance_id) for _ in range(20))


def test_an_instance_that_was_shown_can_be_missing_for_a_while() -> None:
    aws = build_face(OpenAnswers(seed=1, inconsistent_reads=True))
    launch_instance(aws)
    aws.cloud.clock.advance(LAG)
    assert {len(aws.cloud.instances.describe_all()) for _ in range(20)} == {0, 1}
    aws.cloud.clock.advance(LAG)
    assert {len(aws.cloud.instances.describe_all()) for _ in range(20)} == {1}


def test_a_fleet_may_not_find_a_new_launch_template() -> None:
    aws = build_face(OpenAnswers(late_templates=True))
    request = build_fleet_request(aws, "m5.large")
    with pytest.raises(NotFound, match="InvalidLaunchTemplateName"):
        aws.ec2.create_fleet(request)
    aws.cloud.clock.advance(open_answers.TEMPLATE_DELAY)
    assert len(aws.ec2.create_fleet(request).instances) == 1


def test_an_instance_that_is_not_shown_yet_may_not_be_terminated() -> None:
    aws = build_face(OpenAnswers(unseen_terminations=True))
    instance_id = launch_instance(aws)
    with pytest.raises(NotFound):
        aws.cloud.terminate_instances([instance_id])
    aws.cloud.clock.advance(LAG)
    aws.cloud.terminate_instances([instance_id])
    assert aws.cloud.instances.find(instance_id).state == "shutting-down"


def test_the_seeds_select_every_answer() -> None:
    answers = [draw_open_answers(seed) for seed in range(20)]
    for field in ANSWER_FIELDS:
        assert {getattr(answer, field) for answer in answers} == {True, False}
    assert draw_open_answers(7) == draw_open_answers(7)


def test_a_drawn_script_uses_the_answers_of_its_seed_and_a_play_does_not() -> None:
    world = FaultWorld(5, "tick")
    world.set_up(ScriptSetup())
    assert world.cloud.fleets.open_answers == OpenAnswers()
    for draw in (draw_script, draw_brief_script):
        assert draw(5).setup.has_open_answers
    world = FaultWorld(5, "tick")
    world.set_up(ScriptSetup(has_open_answers=True))
    assert world.cloud.fleets.open_answers == draw_open_answers(5)
    assert draw_open_answers(5) != OpenAnswers(seed=5)


def test_the_page_about_faults_lists_every_open_answer() -> None:
    _, _, section = FAULTS_PAGE.read_text().partition("| Question | Answers | Name |")
    names = {line.split("|")[3].split("`")[1] for line in section.partition("\n\n")[0].splitlines()[2:]}
    assert len(ANSWER_FIELDS) >= 4
    assert names >= {*ANSWER_FIELDS, "replay_answer"}
    assert hasattr(Cloud(Clock()).fleets, "replay_answer")
