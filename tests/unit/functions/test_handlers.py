"""The Lambdas: each builds its world from the environment and runs its own cycle."""

import importlib
import sys
from base64 import urlsafe_b64decode
from datetime import UTC, datetime, timedelta
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest

from functions.events import get_trigger_name, list_messages
from functions.invocation import get_current_time
from shared import production_world as production
from shared.aws.dynamodb import DynamoTable
from shared.aws.ec2.client import BotoEc2
from shared.aws.eks import BotoEks
from shared.aws.on_demand_prices import BotoPricingService, UnreachablePricing
from shared.aws.s3 import S3Bucket
from shared.aws.sqs import SqsMessageQueue
from shared.errors import Unreachable
from shared.model.ec2.account import ControlPlaneFacts
from shared.ports.world import World
from shared.settings import Settings
from sim.fault_tap import PortCall, tap_world
from tests.support.actions_world import Outside

NAMES = ("catalog", "disrupt", "interrupt", "lifecycle", "provision", "watch")
CONTEXT = SimpleNamespace(aws_request_id="request-1", get_remaining_time_in_millis=lambda: 60_000)
SETTINGS = Settings(
    cluster_name="demo", region="eu-west-1", table_name="rows", bucket_name="things", queue_prefix="https://sqs/x-"
)
FACTS = ControlPlaneFacts(
    name="demo", endpoint="https://k.eks", certificate_authority="", version="1.34", service_cidr="10.0.0.0/16"
)


def import_handler(name: str) -> ModuleType:
    return importlib.import_module(f"functions.{name}.handler")


@pytest.mark.parametrize("name", ["disrupt", "interrupt", "lifecycle", "provision"])
def test_cycle_knows_the_remaining_time_of_its_invocation(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module, worlds = import_handler(name), list[World]()
    monkeypatch.setattr(module, "build_world", lambda *_: Outside().build_world())
    monkeypatch.setattr(module, "handle", lambda _, world: worlds.append(world))
    module.handler({}, SimpleNamespace(aws_request_id="request-1", get_remaining_time_in_millis=lambda: 4000))
    assert worlds[0].time_left is not None
    assert worlds[0].time_left() == timedelta(seconds=4)


@pytest.mark.parametrize(
    ("event", "trigger"),
    [
        ({"source": "schedule"}, "schedule"),
        ({"source": "aws.ec2", "detail": {}}, "aws.ec2"),
        ({"Records": []}, "message"),
        ({"Records": [{"body": "{}"}], "source": "x"}, "message"),
        ({"awslogs": {"data": "H4sI"}}, "log"),
        ({}, "invocation"),
    ],
)
def test_trigger_name_is_derived_from_the_event(event: dict[str, object], trigger: str) -> None:
    assert get_trigger_name(event) == trigger


@pytest.mark.parametrize(
    ("records", "bodies"),
    [
        ([{"body": "a"}, {"body": "b"}], ["a", "b"]),
        ([{"messageId": "1"}], [""]),
        (["nonsense", {"body": "b"}], ["b"]),
        ("nonsense", []),
        (None, []),
    ],
)
def test_message_bodies_are_returned_in_order(records: object, bodies: list[str]) -> None:
    assert [message.body for message in list_messages({"Records": records})] == bodies


def test_an_event_without_records_has_no_messages_and_a_missing_id_is_empty() -> None:
    assert list_messages({}) == []
    messages = list_messages({"Records": [{"messageId": "1"}, {"body": "?"}]})
    assert [message.message_id for message in messages] == ["1", ""]


def test_current_time_is_in_utc() -> None:
    assert get_current_time().tzinfo is UTC
    assert abs(get_current_time() - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.parametrize("name", NAMES)
def test_handler_builds_its_world_from_the_environment_and_runs_a_cycle(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, built = Outside(), []

    def build_world_from_environment(environ: Any, request: str, when: Any) -> World:
        built.append((environ["CLUSTER_NAME"], request, when))
        return outside.build_world(request)

    monkeypatch.setattr(import_handler(name), "build_world", build_world_from_environment)
    monkeypatch.setenv("CLUSTER_NAME", "demo")
    answer = import_handler(name).handler({"source": "schedule"}, CONTEXT)
    assert built == [("demo", "request-1", get_current_time)]
    assert answer.pop("batchItemFailures", []) == []
    assert set(answer) == {"actions"}
    logged = [f'"function":"{name}","trigger":"schedule"' in line for line in outside.lines]
    assert logged[:1] == ([] if name == "watch" else [True])


@pytest.mark.parametrize("name", NAMES)
def test_unreachable_api_server_fails_the_invocation(name: str) -> None:
    def fail_kube_calls(call: PortCall) -> None:
        if call.port == "kube":
            raise Unreachable("kube")

    outside = Outside()
    body = (
        '{"version": "0", "source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning", '
        '"detail": {"instance-id": "i-0123456789abcdef0", "instance-action": "terminate"}}'
    )
    event = {"source": "schedule"} if name == "watch" else {"Records": [{"body": body}]}
    with pytest.raises(Unreachable):
        import_handler(name).handle(event, outside.build_world(tap=fail_kube_calls))
    assert any('"level":"ERROR"' in line and "Unreachable: kube" in line for line in outside.lines)


@pytest.mark.parametrize("name", NAMES)
def test_unexpected_exception_is_logged_before_the_invocation_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = Outside()
    handler_module = import_handler(name)

    def raise_surprise(*_: object) -> None:
        raise ZeroDivisionError("a surprise")

    monkeypatch.setattr(handler_module, name, SimpleNamespace(**{f"run_{name}": raise_surprise}))
    with pytest.raises(ZeroDivisionError):
        handler_module.handle({"source": "schedule"}, outside.build_world())
    assert any("ZeroDivisionError: a surprise" in line and f'"{name}"' in line for line in outside.lines)


def test_invalid_queue_message_is_logged_and_not_retried() -> None:
    outside = Outside()
    answer = import_handler("interrupt").handle({"Records": [{"body": "?"}]}, outside.build_world())
    assert answer["batchItemFailures"] == []
    assert "interruption queue" in outside.lines[0]


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    described_clusters: list[str] = []

    def describe_cluster(_: BotoEks, name: str) -> ControlPlaneFacts:
        described_clusters.append(name)
        return FACTS

    monkeypatch.setattr(BotoEks, "describe_cluster", describe_cluster)
    production._build_container.cache_clear()  # noqa: SLF001 - every test is a new container
    return described_clusters


def test_production_world_is_built_from_the_settings(clusters: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    kube: dict[str, Any] = {}

    def build_client(endpoint: str, **options: object) -> object:
        kube.update(options, endpoint=endpoint)
        return object()

    monkeypatch.setattr(production, "KubeClient", build_client)
    world = production.build_world(SETTINGS.build_environment(), "request-1", get_current_time)
    assert clusters == ["demo"]
    assert (world.settings, world.name, world.clock) == (SETTINGS, "request-1", get_current_time)
    assert (kube["endpoint"], kube["certificate_authority"]) == ("https://k.eks", "")
    assert world.read_packaged_file is not None
    assert world.read_packaged_file("functions/__init__.py").startswith(b'"""The Lambda functions.')
    assert kube["token"]().startswith("k8s-aws-v1.")
    kinds = {"ec2": BotoEc2, "table": DynamoTable, "bucket": S3Bucket, "mailbox": SqsMessageQueue, "eks": BotoEks}
    assert {name: type(getattr(world, name)) for name in kinds} == kinds


def test_configured_endpoint_overrides_the_eks_endpoint(clusters: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    endpoints: list[str] = []
    monkeypatch.setattr(production, "KubeClient", lambda endpoint, **_: endpoints.append(endpoint))
    settings = msgspec.structs.replace(SETTINGS, kube_endpoint="https://proxy")
    production.build_world(settings.build_environment(), "request-1", get_current_time)
    assert (endpoints, clusters) == (["https://proxy"], ["demo"])


@pytest.mark.parametrize(
    ("price_service", "kind"), [("reachable", BotoPricingService), ("unreachable", UnreachablePricing)]
)
def test_pricing_service_is_used_only_if_reachable(price_service: str, kind: type, clusters: list[str]) -> None:
    settings = msgspec.structs.replace(SETTINGS, price_service=price_service)
    assert type(production.build_world(settings.build_environment(), "request-1", get_current_time).prices) is kind
    assert clusters == ["demo"]


def test_the_token_is_signed_for_sts_in_the_partition_of_the_region(
    clusters: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kube: dict[str, Any] = {}
    monkeypatch.setattr(production, "KubeClient", lambda _, **options: kube.update(options))
    settings = msgspec.structs.replace(SETTINGS, region="us-iso-east-1")
    production.build_world(settings.build_environment(), "request-1", get_current_time)
    encoded_url = kube["token"]().removeprefix("k8s-aws-v1.")
    url = urlsafe_b64decode(encoded_url + "=" * (-len(encoded_url) % 4)).decode()
    assert url.startswith("https://sts.us-iso-east-1.c2s.ic.gov/?")
    assert clusters == ["demo"]


def test_clients_are_reused_within_a_lambda_container(clusters: list[str]) -> None:
    first, second = (
        production.build_world(SETTINGS.build_environment(), name, get_current_time) for name in ("one", "two")
    )
    assert (first.name, second.name) == ("one", "two")
    assert first.kube is second.kube
    assert clusters == ["demo"]


def test_failed_describe_cluster_call_is_retried_by_the_next_invocation(
    clusters: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_unreachable(_: BotoEks, name: str) -> ControlPlaneFacts:
        raise Unreachable(name)

    with monkeypatch.context() as patch:
        patch.setattr(BotoEks, "describe_cluster", raise_unreachable)
        with pytest.raises(Unreachable):
            production.build_world(SETTINGS.build_environment(), "one", get_current_time)
    production.build_world(SETTINGS.build_environment(), "two", get_current_time)
    assert clusters == ["demo"]


@pytest.mark.parametrize("missing", ["CLUSTER_NAME", "JOINER_REGION"])
def test_missing_environment_variable_is_reported_by_name(missing: str, clusters: list[str]) -> None:
    environ = {name: value for name, value in SETTINGS.build_environment().items() if name != missing}
    with pytest.raises(KeyError, match=missing):
        production.build_world(environ, "request-1", get_current_time)
    assert clusters == []


def test_emitted_line_is_written_to_standard_output(clusters: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    production.build_world(SETTINGS.build_environment(), "request-1", get_current_time).emit('{"level":"INFO"}')
    assert capsys.readouterr().out == '{"level":"INFO"}\n'
    assert clusters == ["demo"]


def test_only_the_first_invocation_of_a_container_is_a_cold_start(clusters: list[str]) -> None:
    environment = SETTINGS.build_environment()
    worlds = [production.build_world(environment, name, get_current_time) for name in ("one", "two", "three")]
    assert [world.is_cold_start for world in worlds] == [True, False, False]
    assert clusters == ["demo"]


def test_tap_observes_calls_to_production_ports(clusters: list[str]) -> None:
    world = production.build_world(SETTINGS.build_environment(), "request-1", get_current_time)
    calls: list[PortCall] = []
    assert tap_world(world, calls.append).eks.describe_cluster("demo") == FACTS
    assert [(call.port, call.method, call.detail, call.phase, call.world_name) for call in calls] == [
        ("eks", "describe_cluster", "demo", "before", "request-1"),
        ("eks", "describe_cluster", "demo", "after", "request-1"),
    ]
    assert clusters == ["demo", "demo"]


def test_functions_do_not_import_each_other() -> None:
    for name in NAMES:
        other_packages = {f"functions.{function_name}" for function_name in NAMES if function_name != name}
        imported = {getattr(value, "__module__", "") for value in vars(import_handler(name)).values()}
        assert not any(imported_name.startswith(tuple(other_packages)) for imported_name in imported if imported_name)
    assert "functions.invocation" in sys.modules
