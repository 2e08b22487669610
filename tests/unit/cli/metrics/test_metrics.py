"""`joiner metrics`: the printed metrics, and the scrape target."""

import argparse
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cli.main import main
from cli.metrics.command import parse_address
from cli.metrics.exposition import Exposition, RefreshedExposition
from cli.metrics.server import MetricsServer
from cli.status.prometheus.text_format import render_metrics
from cli.terminal.errors import InputError
from shared.decide.prometheus.metric_table import METRIC_BY_NAME, METRIC_TYPE, METRICS
from shared.model.karpenter.money_limit import MoneyPolicy
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import attach_claim, make_cluster_snapshot, make_instance_type, make_node, make_pod

Out = pytest.CaptureFixture[str]
EXAMPLE = ("-f", "examples/cluster", "--instance-types", "examples/catalogue.json")
EVIL = 'a"b\\c\nd{},='


class FakeCluster:
    """Can be read while it has a text; counts reads."""

    text = "joiner_pods_pending 1\n"
    read_count = 0
    seconds = 0.0

    def read(self) -> Exposition:
        self.read_count += 1
        if not self.text:
            raise InputError("the API server does not respond")
        taken_at = datetime.now(UTC) - timedelta(seconds=90)
        return Exposition(cluster=make_cluster_snapshot(taken_at=taken_at, catalog=None), text=self.text)

    def get_seconds(self) -> float:
        return self.seconds


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def server(cluster: FakeCluster) -> Iterator[MetricsServer]:
    server = MetricsServer(("127.0.0.1", 0), RefreshedExposition(cluster.read, 30, cluster.get_seconds))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


def scrape(server: MetricsServer, path: str = "/metrics", **headers: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, body


def test_table_is_sorted_and_has_valid_names() -> None:
    assert [metric.name for metric in METRICS] == sorted(METRIC_BY_NAME)
    assert all(metric.name.startswith(("joiner_", "karpenter_", "operator_")) for metric in METRICS)
    assert all(list(metric.labels) == sorted(metric.labels) for metric in METRICS)


def test_printed_metrics_are_parsed_and_match_the_table(capsys: Out) -> None:
    assert main(["metrics", *EXAMPLE]) == 0
    families = list(text_string_to_metric_families(capsys.readouterr().out))
    assert len({family.name for family in families}) == len(families) >= 10
    for family in families:
        metric = METRIC_BY_NAME[family.name]
        assert (family.type, family.documentation) == (METRIC_TYPE, metric.help_text)
        assert {tuple(sorted(sample.labels)) for sample in family.samples} <= {metric.labels}
        labels = [tuple(sorted(sample.labels.items())) for sample in family.samples]
        assert len(set(labels)) == len(labels), "a duplicate series fails the scrape"


def test_every_metric_of_the_table_is_rendered() -> None:
    managed_node, node_claim = attach_claim(make_node("one"))
    kind = make_instance_type("m.04", 4, 16, zones=("a",), price=0.25)
    pod = make_pod("web")
    snapshot = make_cluster_snapshot(pod, types=(kind,), nodes=(managed_node,), node_claims=(node_claim,))
    text = render_metrics(ClusterState(snapshot), MoneyPolicy(cluster_limit=4_000_000))
    rendered = {family.name for family in text_string_to_metric_families(text)}
    assert set(METRIC_BY_NAME) - rendered == {"joiner_catalog_age_seconds", "joiner_snapshot_age_seconds"}


def test_label_values_are_escaped_so_that_a_parser_returns_them_unchanged() -> None:
    managed_node, node_claim = attach_claim(make_node("one", labels={"node.kubernetes.io/instance-type": EVIL}))
    snapshot = make_cluster_snapshot(nodes=(managed_node,), node_claims=(node_claim,), catalog=None)
    families = text_string_to_metric_families(render_metrics(ClusterState(snapshot)))
    values = {sample.labels.get("instance_type") for family in families for sample in family.samples}
    assert values == {None, EVIL}


def test_node_metrics_have_cpu_in_cores_and_the_requests_of_pods() -> None:
    managed_node, node_claim = attach_claim(make_node("one"))
    pod = make_pod("web", cpu="500m", on="one")
    snapshot = make_cluster_snapshot(pod, nodes=(managed_node,), node_claims=(node_claim,), catalog=None)
    values = {
        (sample.name, sample.labels["resource_type"]): sample.value
        for family in text_string_to_metric_families(render_metrics(ClusterState(snapshot)))
        for sample in family.samples
        if sample.labels.get("node_name") == "one"
    }
    assert values["karpenter_nodes_allocatable", "cpu"] == 4
    assert values["karpenter_nodes_total_pod_requests", "cpu"] == 0.5


@pytest.mark.loopback
def test_scrapes_read_the_cluster_once_per_interval_and_show_the_age(
    server: MetricsServer, cluster: FakeCluster
) -> None:
    bodies = [scrape(server) for _ in range(3)]
    assert cluster.read_count == 1
    assert {status for status, _ in bodies} == {200}
    values = {family.name: family.samples[0].value for family in text_string_to_metric_families(bodies[0][1])}
    assert 90 <= values["joiner_snapshot_age_seconds"] < 120
    cluster.seconds = 30
    scrape(server)
    assert cluster.read_count == 2


@pytest.mark.loopback
def test_failed_read_is_a_failed_scrape_without_old_values(
    server: MetricsServer, cluster: FakeCluster, capsys: Out
) -> None:
    assert scrape(server)[0] == 200
    cluster.text, cluster.seconds = "", 31
    assert [scrape(server) for _ in range(2)] == [(503, "the API server does not respond\n")] * 2
    assert cluster.read_count == 2
    cluster.text, cluster.seconds = "joiner_pods_pending 2\n", 62
    status, body = scrape(server)
    assert (status, body.splitlines()[-1]) == (200, "joiner_pods_pending 2")
    assert "the API server does not respond" in capsys.readouterr().err


@pytest.mark.loopback
def test_other_paths_and_hosts_are_rejected_without_a_read(server: MetricsServer, cluster: FakeCluster) -> None:
    assert scrape(server, "/")[0] == 404
    assert scrape(server, Host="evil.example")[0] == 403
    assert cluster.read_count == 0


def test_input_that_cannot_be_read_prints_no_metrics(tmp_path: Path, capsys: Out) -> None:
    (tmp_path / "bad.yaml").write_text("kind: [")
    assert main(["metrics", "-f", "examples/cluster", "-f", str(tmp_path / "bad.yaml")]) == 1
    captured = capsys.readouterr()
    assert (captured.out, "bad.yaml" in captured.err) == ("", True)


@pytest.mark.parametrize("text", ["0.0.0.0:9468", "9468", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536", "[::1]:1"])
def test_only_addresses_of_this_computer_are_accepted(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        parse_address(text)


@pytest.mark.parametrize(
    "arguments", [("--listen", "127.0.0.1:0"), ("--refresh-seconds", "5"), ("serve", "--refresh-seconds", "0")]
)
def test_invalid_arguments_are_wrong_usage(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["metrics", *arguments, *EXAMPLE])


@pytest.mark.loopback
def test_port_in_use_is_an_error(server: MetricsServer, capsys: Out) -> None:
    assert main(["metrics", "serve", "--listen", f"127.0.0.1:{server.port}", *EXAMPLE]) == 1
    assert "choose another port" in capsys.readouterr().err
