"""Where the catalogue of a plan comes from: a file, a bucket, the account; and what is said where there is none."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from botocore.config import Config

from cli.main import main
from cli.planning.catalog_source import load_catalog
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import ObjectMeta
from shared.model.kubernetes.node import Node
from sim.aws_http.server import EmbeddedAws
from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock
from tests.support.cli.cli_objects import CATALOGUE, POOL, make_pod

Out = pytest.CaptureFixture[str]
NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
EMPTY = ClusterSnapshot(taken_at=NOW)
NODE_CLASS = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {
        "role": "joiner-node",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "*"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "*"}}],
    },
}


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [POOL, make_pod("a")]}))
    return str(path)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedAws]:
    with EmbeddedAws(Cloud(Clock())) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        yield server


def plan(*arguments: str) -> int:
    return main(["plan", "--now", "2026-11-21T08:00:00Z", *arguments])


def test_catalog_file_may_be_yaml(tmp_path: Path, cluster: str, capsys: Out) -> None:
    path = tmp_path / "catalogue.yaml"
    path.write_text(yaml.safe_dump(CATALOGUE))
    assert plan("-f", cluster, "--instance-types", str(path)) == 0
    assert "m.02" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (None, ("No such file or directory", "--instance-types aws")),
        ("", ("is empty: expected a catalog as JSON or YAML",)),
        ("{}", ("not a catalog: Object missing required field `region`",)),
        ("[1, 2]", ("not a catalog: Expected `object`, got `array`",)),
        ("- 1\n- 2\n", ("not a catalog",)),
        ("a: b", ("not a catalog",)),
        ("a: 1\n---\nb: 1\n", ("expected 1 document, found 2",)),
        ("a: b: c", (":1: not YAML: mapping values",)),
        ("\0\1\2", ("is not text",)),
        (json.dumps(CATALOGUE | {"instanceTypes": []}), ("region or instanceTypes: empty",)),
        (json.dumps(CATALOGUE).replace('"cpu": "2"', '"cpu": "two"'), ("instanceTypes[m.02].capacity: cpu",)),
        ("[" * 5000, ("not a catalog",)),
    ],
)
def test_unreadable_catalog_stops_planning_and_suggests_a_fix(
    tmp_path: Path, cluster: str, capsys: Out, body: str | None, words: tuple[str, ...]
) -> None:
    path = tmp_path / "catalogue.json"
    if body is not None:
        path.write_text(body)
    assert plan("-f", cluster, "--instance-types", str(path)) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    for word in ("catalogue.json", *words):
        assert word in captured.err


def test_missing_catalog_option_error_lists_all_catalog_sources(cluster: str, capsys: Out) -> None:
    with pytest.raises(SystemExit) as raised:
        plan("-f", cluster)
    assert raised.value.code == 2
    stderr = capsys.readouterr().err
    for way in ("--instance-types FILE", "s3://BUCKET", "aws[:REGION]"):
        assert way in stderr


@pytest.mark.loopback
def test_newest_valid_catalog_is_read_from_the_deployment_bucket(aws: EmbeddedAws, cluster: str, capsys: Out) -> None:
    s3 = boto3.client("s3", endpoint_url=aws.url, config=Config(retries={"total_max_attempts": 1}))
    s3.create_bucket(Bucket="joiner")
    assert plan("-f", cluster, "--instance-types", "s3://joiner") == 1
    assert "s3://joiner: no catalog under catalogue/: run the catalog function" in capsys.readouterr().err

    old, new, bad = (f"catalogue/2026112{day}T080000Z.json" for day in (1, 2, 3))
    dearer = json.loads(json.dumps(CATALOGUE).replace("0.1", "0.7"))
    for key, body in ((old, dearer), (new, CATALOGUE), (bad, {})):
        s3.put_object(Bucket="joiner", Key=key, Body=json.dumps(body).encode())
    results = []
    for source in ("s3://joiner", f"s3://joiner/{old}"):
        code = plan("-f", cluster, "--instance-types", source, "-o", "json")
        captured = capsys.readouterr()
        results.append((code, json.loads(captured.out)["totals"]["price"], f"Catalogue {bad}" in captured.err))
    assert results == [(1, 0.1, True), (0, 0.2, False)]
    assert plan("-f", cluster, "--instance-types", f"s3://joiner/{bad}") == 1
    assert "not a catalog" in capsys.readouterr().err
    s3.close()


@pytest.mark.loopback
@pytest.mark.parametrize("source", ["aws:us-east-1", "s3://joiner"])
def test_unreachable_account_error_lists_other_catalog_sources(
    cluster: str, capsys: Out, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr("shared.aws.clients._build_config", lambda *_: Config(retries={"total_max_attempts": 1}))
    assert plan("-f", cluster, "--instance-types", source) == 1
    stderr = capsys.readouterr().err
    assert f"joiner plan: {source}: Unreachable: " in stderr
    assert "check credentials and region. --instance-types names" in stderr


ARN = "arn:aws:eks:eu-west-1:123456789012:cluster/prod"
ENDPOINT = "https://ABC.gr7.eu-central-1.eks.amazonaws.com"
WHERE: list[tuple[dict[str, str], tuple[str, ...], str]] = [
    ({"topology.kubernetes.io/region": "ap-south-1"}, (ARN,), "ap-south-1"),
    ({}, (ARN, ENDPOINT), "eu-west-1"),
    ({}, ("prod", ENDPOINT), "eu-central-1"),
    ({}, ("prod", "https://127.0.0.1"), "us-east-1"),
]


@pytest.mark.parametrize(("labels", "hints", "region"), WHERE)
def test_catalog_region_is_derived_from_the_cluster(
    monkeypatch: pytest.MonkeyPatch, labels: dict[str, str], hints: tuple[str, ...], region: str
) -> None:
    regions: list[str] = []
    monkeypatch.setattr("cli.planning.catalog_source._load_from_account", lambda where, *_: regions.append(where))
    node = Node(meta=ObjectMeta(name="a", labels=tuple(labels.items())))
    load_catalog("aws", ClusterSnapshot(taken_at=NOW, nodes=(node,)), hints, NOW)
    assert regions == [region]


def test_unknown_catalog_region_is_reported(cluster: str, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    assert plan("-f", cluster, "--instance-types", "aws") == 1
    assert "aws: the region is unknown: write --instance-types aws:REGION" in capsys.readouterr().err


@pytest.mark.parametrize(("bucket", "source"), [("", "aws"), ("joiner", "s3://joiner")])
def test_live_plan_reads_the_catalog_from_the_deployment_bucket_or_the_account(
    monkeypatch: pytest.MonkeyPatch, bucket: str, source: str
) -> None:
    sources: list[Any] = []

    def refuse(source: str, *_: object) -> None:
        sources.append(source)
        raise KeyboardInterrupt

    monkeypatch.setenv("JOINER_BUCKET_NAME", bucket)
    monkeypatch.setattr("cli.planning.catalog_source.load_catalog", refuse)
    monkeypatch.setattr(
        "cli.planning.cluster_source.read_planning_input",
        lambda *_: type("Seen", (), {"cluster": EMPTY, "region_hints": ()}),
    )
    assert plan("--context") == 130
    assert sources == [source]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("m7a.xlarg", "; did you mean m7a.xlarge or "),
        ("zzz", ": it has c6a.large, c7a.2xlarge, c7a.large and 9 more\n"),
    ],
)
def test_unknown_instance_type_gets_suggestions_from_the_catalog(name: str, words: str, capsys: Out) -> None:
    assert main(["catalog", "show", "examples/catalogue.json", name]) == 1
    assert f"{name}: not in examples/catalogue.json{words}" in capsys.readouterr().err
