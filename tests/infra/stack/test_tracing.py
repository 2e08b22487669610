"""Tracing: nothing of it in the stack unless the setting is on, and traces of all functions if it is."""

from pathlib import Path

import pytest

from infra.functions import bundling
from infra.iam.trace_grants import TRACE_ACTIONS
from sim.authorization.template_policies import Template, get_resources, parse_function_policies
from sim.lambda_runtime.stack_template.synthesis import synthesize_template
from tests.infra.iam.recorded_runs import build_watching_world, run_interruption, synthesize_complete_template

STAGES = {"apply", "decide", "report", "take"}


@pytest.fixture(scope="module", name="plain_template")
def synthesize_plain_template() -> Template:
    return synthesize_template()


def list_trace_actions(template: Template) -> dict[str, set[str]]:
    return {
        function: {action for statement in policy for action in statement.actions if action.startswith("xray:")}
        for function, policy in parse_function_policies(template).items()
    }


def test_a_stack_without_tracing_has_no_permission_and_no_tracing_configuration(plain_template: Template) -> None:
    assert set().union(*list_trace_actions(plain_template).values()) == set()
    functions = get_resources(plain_template, "AWS::Lambda::Function").values()
    assert [properties for properties in functions if "TracingConfig" in properties] == []
    assert {properties["Environment"]["Variables"]["JOINER_TRACING"] for properties in functions} == {"off"}


def test_a_stack_with_tracing_traces_every_function_with_the_two_permissions() -> None:
    template = synthesize_complete_template()
    functions = get_resources(template, "AWS::Lambda::Function").values()
    assert {properties["TracingConfig"]["Mode"] for properties in functions} == {"Active"}
    actions = list_trace_actions(template)
    assert len(actions) == len(functions)
    assert set(map(frozenset, actions.values())) == {frozenset(TRACE_ACTIONS)}


def test_a_traced_run_has_a_segment_for_each_stage_of_its_cycles_and_no_denial() -> None:
    world = build_watching_world()
    run_interruption(world)
    assert world.access_control.denials == []
    segments = world.traces.segments
    for function in ("disrupt", "interrupt", "lifecycle", "provision"):
        assert {
            path[1] for path in (segment.path for segment in segments) if path[0] == function and path[1:]
        } >= STAGES
    cycles = [segment for segment in segments if len(segment.path) == 1]
    assert all(cycle.annotations.keys() == {"cluster", "cycle", "function"} for cycle in cycles)
    assert {cycle.annotations["function"] for cycle in cycles} == {cycle.path[0] for cycle in cycles}


def test_the_layer_has_the_tracing_libraries_only_with_the_setting() -> None:
    lock = bundling.LOCK_FILE.read_text()
    for has_tracing in (False, True):
        entries = bundling.filter_lock_entries(lock, features=bundling.LayerFeatures(has_tracing=has_tracing))
        for library in bundling.TRACING_LIBRARIES:
            assert (f"\n{library}==" in entries) is has_tracing


def test_only_the_adapter_imports_the_tracer() -> None:
    sources = [path for name in ("functions", "shared") for path in (bundling.ROOT / name).rglob("*.py")]
    users = [path for path in sources if "aws_lambda_powertools.tracing" in Path(path).read_text()]
    assert [path.name for path in users] == ["tracing.py"]
