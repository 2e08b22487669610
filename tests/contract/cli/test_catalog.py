"""`joiner catalog`: the instance types and prices of a region, as a file."""

import gzip
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.aws.account_api import AccountApis, build_account_apis
from cli.inputs.commitments import read_commitments
from cli.main import main
from shared.aws.clients import Clients
from shared.errors import Unreachable
from shared.store.commitments import decode_commitments
from sim.aws_http.server import EmbeddedAws
from sim.cloud.cloud import Cloud
from sim.cloud.in_process_aws import CloudPricing
from sim.time.virtual_clock import Clock
from tests.support.cli.cli_objects import CATALOGUE
from tests.unit.cli.planning.test_catalog_source import NODE_CLASS

EXAMPLES = Path(__file__).parents[3] / "examples"
Capture = pytest.CaptureFixture[str]


def run_catalog(*arguments: str) -> int:
    return main(["catalog", *arguments])


def test_catalog_build_reads_the_embedded_cloud(tmp_path: Path, capsys: Capture) -> None:
    classes, path = tmp_path / "class.yaml", tmp_path / "catalogue.json"
    classes.write_text(yaml.safe_dump(NODE_CLASS))
    assert run_catalog("build", "--embedded", "-o", str(path), "-f", str(classes), "--region", "eu-west-1") == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "eu-west-1, " in captured.err
    assert "types in 3 zones for default" in captured.err
    assert ", simulated AWS APIs, " in captured.err
    catalogue: dict[str, Any] = json.loads(path.read_bytes())
    assert {
        offering["zone"]
        for instance_type in catalogue["nodeClasses"]["default"]
        for offering in instance_type["offerings"]
    } == {
        "eu-west-1a",
        "eu-west-1b",
        "eu-west-1c",
    }
    assert len(catalogue["nodeClasses"]["default"]) > 700

    assert run_catalog("show", str(path), "m5.large") == 0
    output = capsys.readouterr().out
    assert "m5.large for default\n  capacity: cpu 2, " in output
    assert "  karpenter.k8s.aws/instance-family: m5\n" in output
    assert "eu-west-1a on-demand: $0." in output


def test_compressed_catalog_can_be_built_and_shown(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "catalogue.json.gz"
    assert run_catalog("build", "--embedded", "-o", str(path)) == 0
    assert path.stat().st_size < 300_000
    assert json.loads(gzip.decompress(path.read_bytes()))["region"] == "us-east-1"
    capsys.readouterr()
    assert run_catalog("show", str(path)) == 0
    assert "types in 3 zones, prices of 2026-" in capsys.readouterr().out
    assert run_catalog("show", str(path), "x9.large") == 1
    assert "x9.large: not in" in capsys.readouterr().err


def test_saved_price_list_is_used_when_pricing_is_unreachable_and_its_age_reported(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, prices = tmp_path / "catalogue.json", tmp_path / "prices.json"
    assert run_catalog("prices", "--embedded", "-o", str(prices)) == 0
    assert "prices of us-east-1" in capsys.readouterr().err
    listed = json.loads(prices.read_bytes())
    assert set(listed) == {"region", "pricedAt", "onDemand"}

    def raise_unreachable(*_: object) -> None:
        raise Unreachable("nobody there")

    monkeypatch.setattr(CloudPricing, "get_on_demand_prices", raise_unreachable)
    assert run_catalog("build", "--embedded", "-o", str(path)) == 1
    errors = capsys.readouterr().err
    assert "on-demand prices: Unreachable: nobody there: check --region" in errors
    assert "without them nothing is sold on demand: add --prices FILE" in errors
    catalogue = json.loads(path.read_bytes())
    assert {offering["capacityType"] for kind in catalogue["instanceTypes"] for offering in kind["offerings"]} == {
        "spot"
    }
    assert run_catalog("build", "--embedded", "-o", str(path), "--prices", str(prices)) == 0
    assert "on-demand prices are older, because they could not be read" in capsys.readouterr().err
    assert run_catalog("show", str(path), "m5.large") == 0
    assert "older price" in capsys.readouterr().out
    assert run_catalog("build", "--embedded", "-o", str(path), "--prices", str(prices), "--region", "eu-west-1") == 1
    assert "prices.json: has the prices of us-east-1, not of eu-west-1" in capsys.readouterr().err
    prices.write_text("[]")
    assert run_catalog("build", "--embedded", "-o", str(path), "--prices", str(prices)) == 1
    assert "prices.json: not a price list: Expected `object`, got `array`" in capsys.readouterr().err


@pytest.mark.loopback
def test_embedded_catalog_equals_the_one_read_over_http(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same cloud, two ways: `--embedded` in process, and an account whose endpoint is the cloud."""
    cloud, classes = Cloud(Clock(), cluster="demo"), tmp_path / "class.yaml"
    classes.write_text(yaml.safe_dump(NODE_CLASS))
    files = [tmp_path / "embedded.json", tmp_path / "http.json"]
    assert run_catalog("build", "--embedded", "-o", str(files[0]), "-f", str(classes)) == 0
    capsys.readouterr()

    @contextmanager
    def open_cloud_over_http(*_: object, **__: object) -> Iterator[AccountApis]:
        with EmbeddedAws(cloud) as server:
            clients = Clients("us-east-1", endpoint_url=server.url)
            yield build_account_apis(clients, cloud.clock.get_time())
            clients.close()

    monkeypatch.setattr("cli.catalog.command.open_apis", open_cloud_over_http)
    assert run_catalog("build", "-o", str(files[1]), "-f", str(classes)) == 0
    assert " AWS API calls, " in capsys.readouterr().err
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.loopback
def test_prices_are_read_in_the_region_of_the_credentials(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with EmbeddedAws(Cloud(Clock())) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        assert run_catalog("prices", "-o", "-") == 0
    assert json.loads(capfdbinary.readouterr().out)["region"] == "us-east-1"


def test_unknown_region_is_reported_with_the_region_flag(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    assert run_catalog("prices", "-o", "-") == 1
    assert "the region is unknown: add --region" in capsys.readouterr().err


def test_unreadable_node_class_is_reported_and_the_others_are_written(tmp_path: Path, capsys: Capture) -> None:
    bad = json.loads(json.dumps(NODE_CLASS)) | {"metadata": {"name": "bad"}}
    bad["spec"]["blockDeviceMappings"] = [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "much"}}]
    (tmp_path / "classes.yaml").write_text(yaml.safe_dump_all([NODE_CLASS, bad]))
    path = tmp_path / "c.json.gz"
    assert run_catalog("build", "--embedded", "-o", str(path), "-f", str(tmp_path / "classes.yaml")) == 1
    assert "EC2NodeClass bad: " in capsys.readouterr().err
    assert set(json.loads(gzip.decompress(path.read_bytes()))["nodeClasses"]) == {"default"}


def test_node_class_uses_its_matching_subnets_and_a_class_without_subnets_is_reported(
    tmp_path: Path, capsys: Capture
) -> None:
    own_class, other_class = json.loads(json.dumps(NODE_CLASS)), json.loads(json.dumps(NODE_CLASS))
    own_class["spec"]["subnetSelectorTerms"] = [{"tags": {"karpenter.sh/discovery": "shop"}}]
    other_class["metadata"]["name"] = "other"
    other_class["spec"]["subnetSelectorTerms"] = [{"tags": {"team": "none"}}]
    (tmp_path / "classes.yaml").write_text(yaml.safe_dump_all([own_class, other_class]))
    path = tmp_path / "c.json.gz"
    assert run_catalog("build", "--embedded", "-o", str(path), "-f", str(tmp_path / "classes.yaml")) == 1
    errors = capsys.readouterr().err
    assert "EC2NodeClass other: spec.subnetSelectorTerms matched nothing in us-east-1" in errors
    assert "types in 3 zones for default" in errors


def test_instance_types_without_an_on_demand_price_are_reported_without_failing(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CloudPricing, "get_on_demand_prices", lambda *_: {"m5.large": 0.1})
    assert run_catalog("build", "--embedded", "-o", str(tmp_path / "c.json.gz")) == 0
    assert "types without on-demand price: a1.2xlarge, a1.4xlarge, a1.large and 1,362 more" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["build", "prices"])
def test_unwritable_output_is_reported_before_any_aws_call(
    action: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "cli.catalog.command.open_apis",
        lambda *_, **__: pytest.fail("the account is asked though nothing can be written"),
    )
    assert run_catalog(action, "-o", str(tmp_path / "none" / "c.json")) == 1
    assert "c.json: its folder does not exist: name another file with -o, or `-`" in capsys.readouterr().err
    assert run_catalog(action, "-o", str(tmp_path)) == 1
    assert "is a folder" in capsys.readouterr().err
    (tmp_path / "c.json").touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert run_catalog(action, "-o", str(tmp_path / "c.json")) == 1
    assert "c.json: is not writable" in capsys.readouterr().err


def test_full_disk_is_reported(capsys: Capture) -> None:
    assert run_catalog("prices", "--embedded", "-o", "/dev/full") == 1
    assert "/dev/full: No space left on device: name another file with -o" in capsys.readouterr().err


def test_catalog_show_prints_json_for_the_catalog_or_one_instance_type(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(CATALOGUE))
    assert run_catalog("show", str(path), "-o", "json") == 0
    catalogue = json.loads(capsys.readouterr().out)
    names = [instance_type["name"] for instance_type in catalogue["instanceTypes"]]
    assert (catalogue["region"], names) == (
        CATALOGUE["region"],
        [instance_type["name"] for instance_type in CATALOGUE["instanceTypes"]],
    )
    assert run_catalog("show", str(path), names[-1], "-o", "json") == 0
    assert [instance_type["name"] for instance_type in json.loads(capsys.readouterr().out)["instanceTypes"]] == names[
        -1:
    ]
    assert run_catalog("show", str(path), "x9.large", "-o", "json") == 1
    assert capsys.readouterr().out == ""


def test_unreadable_input_is_reported(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
    assert run_catalog("build", "--embedded", "-o", "-", "-f", str(tmp_path / "pod.yaml")) == 1
    assert "no EC2NodeClass" in capsys.readouterr().err
    assert run_catalog("show", str(tmp_path / "none.json.gz")) == 1
    assert "check the path" in capsys.readouterr().err


def test_unavailable_offering_is_shown_as_not_available(tmp_path: Path, capsys: Capture) -> None:
    catalogue = json.loads(json.dumps(CATALOGUE))
    catalogue["instanceTypes"][0]["offerings"][0]["available"] = False
    (tmp_path / "c.json").write_text(json.dumps(catalogue))
    assert run_catalog("show", str(tmp_path / "c.json"), catalogue["instanceTypes"][0]["name"]) == 0
    assert "not available" in capsys.readouterr().out


def test_missing_action_lists_the_available_actions(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        run_catalog()
    assert "which ACTION? build, prices, commitments or show" in capsys.readouterr().err


def test_commitments_are_checked_and_written_as_the_functions_read_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "commitments.json"
    assert main(["catalog", "commitments", str(EXAMPLES / "commitments.yaml"), "-o", str(output)]) == 0
    assert "2 Savings Plans, 2 purchases of Reserved Instances" in capsys.readouterr().err
    assert decode_commitments("F", output.read_bytes()) == read_commitments(str(EXAMPLES / "commitments.yaml"))
    (tmp_path / "bad.yaml").write_text("savingsPlans: [{id: a}]")
    assert main(["catalog", "commitments", str(tmp_path / "bad.yaml"), "-o", "-"]) == 1
    assert "bad.yaml:1: savingsPlans[0] (a): " in capsys.readouterr().err
