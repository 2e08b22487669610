"""The Lambdas: each builds its world from the environment and runs its own cycle."""

import importlib
import sys
from datetime import UTC, datetime, timedelta
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest

from functions.trigger import bodies_of, clock, ids_of, trigger_of
from shared import world as production
from shared.aws.dynamodb import DynamoTable
from shared.aws.ec2 import BotoEc2
from shared.aws.eks import BotoEks
from shared.aws.pricing import BotoPrices, NoPrices
from shared.aws.s3 import S3Bucket
from shared.aws.sqs import SqsMailbox
from shared.errors import Unreachable
from shared.model.ec2 import ClusterFacts
from shared.ports import World
from shared.settings import Settings
from sim.faults import Call, tapped_world
from tests.unit.actions_world import Outside

NAMES = ("catalog", "disrupt", "interrupt", "lifecycle", "provision", "watch")
CONTEXT = SimpleNamespace(aws_request_id="request-1")
SETTINGS = Settings(
    cluster_name="demo", region="eu-west-1", table_name="rows", bucket_name="things", queue_prefix="https://sqs/x-"
)
FACTS = ClusterFacts(
    name="demo", endpoint="https://k.eks", certificate_authority="", version="1.34", service_cidr="10.0.0.0/16"
)


def module(name: str) -> ModuleType:
    return importlib.import_module(f"functions.{name}.handler")


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
def test_a_trigger_is_a_word(event: dict[str, object], trigger: str) -> None:
    assert trigger_of(event) == trigger


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
def test_bodies_are_those_of_the_messages_in_order(records: object, bodies: list[str]) -> None:
    assert list(bodies_of({"Records": records})) == bodies
    assert list(bodies_of({})) == []
    assert len(ids_of({"Records": records})) == len(bodies)
    assert ids_of({"Records": [{"messageId": "1"}, {"body": "?"}]}) == ("1", "")


def test_the_clock_is_the_present_in_utc() -> None:
    assert clock().tzinfo is UTC
    assert abs(clock() - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.parametrize("name", NAMES)
def test_a_handler_builds_its_world_from_the_environment_and_runs_its_cycle(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, built = Outside(), []

    def world_from_environment(environ: Any, request: str, when: Any) -> World:
        built.append((environ["CLUSTER_NAME"], request, when))
        return outside.world(request)

    monkeypatch.setattr(module(name), "world_from_environment", world_from_environment)
    monkeypatch.setenv("CLUSTER_NAME", "demo")
    answer = module(name).handler({"source": "schedule"}, CONTEXT)
    assert built == [("demo", "request-1", clock)]
    assert answer.pop("batchItemFailures", []) == []
    assert set(answer) == {"actions"}
    told = [f'"function":"{name}","trigger":"schedule"' in line for line in outside.lines]
    assert told[:1] == ([] if name == "watch" else [True])


@pytest.mark.parametrize("name", NAMES)
def test_a_cycle_that_cannot_see_fails_its_invocation(name: str) -> None:
    def down(call: Call) -> None:
        if call.port == "kube":
            raise Unreachable("kube")

    outside = Outside()
    body = (
        '{"version": "0", "source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning", '
        '"detail": {"instance-id": "i-0123456789abcdef0", "instance-action": "terminate"}}'
    )
    with pytest.raises(Unreachable):
        module(name).handle({"Records": [{"body": body}]}, outside.world(tap=down))
    assert any('"level":"ERROR"' in line and "Unreachable: kube" in line for line in outside.lines)


@pytest.mark.parametrize("name", NAMES)
def test_what_nobody_foresaw_is_told_before_it_fails_the_invocation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = Outside()
    some = module(name)

    def surprise(*_: object) -> None:
        raise ZeroDivisionError("a surprise")

    monkeypatch.setattr(some, "cycle", SimpleNamespace(**{name: surprise}))
    with pytest.raises(ZeroDivisionError):
        some.handle({"source": "schedule"}, outside.world())
    assert any("ZeroDivisionError: a surprise" in line and f'"{name}"' in line for line in outside.lines)


def test_nonsense_in_the_queue_is_named_and_not_brought_back() -> None:
    outside = Outside()
    answer = module("interrupt").handle({"Records": [{"body": "?"}]}, outside.world())
    assert answer["batchItemFailures"] == []
    assert "interruption queue" in outside.lines[0]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []

    def cluster(_: BotoEks, name: str) -> ClusterFacts:
        asked.append(name)
        return FACTS

    monkeypatch.setattr(BotoEks, "cluster", cluster)
    production._world.cache_clear()  # noqa: SLF001 - every test is a new container
    return asked


def test_the_world_of_production_is_wired_from_the_settings(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "")
    kube: dict[str, Any] = {}

    def client(endpoint: str, **options: object) -> object:
        kube.update(options, endpoint=endpoint)
        return object()

    monkeypatch.setattr(production, "KubeClient", client)
    world = production.world_from_environment(SETTINGS.environment(), "request-1", clock)
    assert asked == ["demo"]
    assert (world.settings, world.name, world.clock) == (SETTINGS, "request-1", clock)
    assert (kube["endpoint"], kube["certificate_authority"]) == ("https://k.eks", "")
    assert kube["proxy"] == "http://proxy:3128"
    assert world.packaged is not None
    assert world.packaged("functions/__init__.py").startswith(b'"""The Lambdas')
    assert kube["token"]().startswith("k8s-aws-v1.")
    kinds = {"ec2": BotoEc2, "table": DynamoTable, "bucket": S3Bucket, "mailbox": SqsMailbox, "eks": BotoEks}
    assert {name: type(getattr(world, name)) for name in kinds} == kinds


def test_a_given_endpoint_goes_before_that_of_eks(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    endpoints: list[str] = []
    monkeypatch.setattr(production, "KubeClient", lambda endpoint, **_: endpoints.append(endpoint))
    settings = msgspec.structs.replace(SETTINGS, kube_endpoint="https://proxy")
    production.world_from_environment(settings.environment(), "request-1", clock)
    assert (endpoints, asked) == (["https://proxy"], ["demo"])


@pytest.mark.parametrize(("said", "kind"), [("asked", BotoPrices), ("unreachable", NoPrices)])
def test_the_pricing_service_is_asked_where_there_is_a_way_to_it(said: str, kind: type, asked: list[str]) -> None:
    settings = msgspec.structs.replace(SETTINGS, price_service=said)
    assert type(production.world_from_environment(settings.environment(), "request-1", clock).prices) is kind
    assert asked == ["demo"]


def test_a_container_makes_its_clients_once(asked: list[str]) -> None:
    first, second = (production.world_from_environment(SETTINGS.environment(), name, clock) for name in ("one", "two"))
    assert (first.name, second.name) == ("one", "two")
    assert first.kube is second.kube
    assert asked == ["demo"]


def test_a_control_plane_that_does_not_answer_is_asked_again(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def down(_: BotoEks, name: str) -> ClusterFacts:
        raise Unreachable(name)

    with monkeypatch.context() as patch:
        patch.setattr(BotoEks, "cluster", down)
        with pytest.raises(Unreachable):
            production.world_from_environment(SETTINGS.environment(), "one", clock)
    production.world_from_environment(SETTINGS.environment(), "two", clock)
    assert asked == ["demo"]


@pytest.mark.parametrize("missing", ["CLUSTER_NAME", "JOINER_REGION"])
def test_a_missing_variable_is_named(missing: str, asked: list[str]) -> None:
    environ = {name: value for name, value in SETTINGS.environment().items() if name != missing}
    with pytest.raises(KeyError, match=missing):
        production.world_from_environment(environ, "request-1", clock)
    assert asked == []


def test_what_is_emitted_is_a_line_of_the_log(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    production.world_from_environment(SETTINGS.environment(), "request-1", clock).emit('{"level":"INFO"}')
    assert capsys.readouterr().out == '{"level":"INFO"}\n'
    assert asked == ["demo"]


def test_a_tap_sees_every_port_of_production(asked: list[str]) -> None:
    world = production.world_from_environment(SETTINGS.environment(), "request-1", clock)
    calls: list[Call] = []
    assert tapped_world(world, calls.append).eks.cluster("demo") == FACTS
    assert [(call.port, call.method, call.detail, call.when, call.who) for call in calls] == [
        ("eks", "cluster", "demo", "before", "request-1"),
        ("eks", "cluster", "demo", "after", "request-1"),
    ]
    assert asked == ["demo", "demo"]


def test_no_function_imports_another() -> None:
    for name in NAMES:
        others = {f"functions.{other}" for other in NAMES if other != name}
        imported = {getattr(value, "__module__", "") for value in vars(module(name)).values()}
        assert not any(found.startswith(tuple(others)) for found in imported if found)
    assert "functions.trigger" in sys.modules
