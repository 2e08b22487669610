"""A real Prometheus gets the metrics by remote write and as a scrape target, and refuses what the simulator refuses."""

import math
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from cli.metrics.exposition import RefreshedExposition
from cli.metrics.server import MetricsServer
from shared.aws.prometheus.remote_write import HEADERS, RemoteWriteEndpoint
from shared.decide.prometheus.compute_metrics import SNAPSHOT_AGE
from shared.decide.prometheus.metric_table import METRICS, Metric
from shared.errors import Fault, Invalid
from shared.model.core.metrics.metric_samples import MetricSamples
from shared.report.remote_write.write_request import encode_requests
from sim.remote_write.workspace import Workspace
from tests.contract.aws.test_remote_write import build_workspace_port
from tests.prometheus.example_cluster import LIMIT_USD_PER_HOUR, build_example_reader, compute_example_metrics
from tests.prometheus.server import PrometheusServer, Series
from tests.unit.docs.test_dashboards import list_expressions

pytestmark = [pytest.mark.controlplane, pytest.mark.loopback, pytest.mark.xdist_group("prometheus")]

NOW: Final = datetime.now(UTC)
WRITTEN_METRICS: Final = [metric.name for metric in METRICS if metric.name != SNAPSHOT_AGE]
AGES: Final = {
    *(metric.name for metric in METRICS if metric.name.endswith("_age_seconds")),
    "karpenter_nodes_current_lifetime_seconds",
}


@pytest.fixture(scope="module")
def prometheus_with_writes(prometheus: PrometheusServer) -> PrometheusServer:
    """Prometheus with the metrics of the example cluster, as the functions write them."""
    port = RemoteWriteEndpoint(prometheus.write_url, lambda: None)
    for _, body in encode_requests(compute_example_metrics(), "written", NOW):
        port.write(body)
    port.close_idle_connections()
    return prometheus


@pytest.fixture(scope="module")
def prometheus_with_scrapes(prometheus: PrometheusServer) -> Iterator[PrometheusServer]:
    """Prometheus that scrapes `joiner metrics serve`."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("JOINER_LIMIT_USD_PER_HOUR", str(LIMIT_USD_PER_HOUR))
        server = MetricsServer(("127.0.0.1", 0), RefreshedExposition(build_example_reader(), 30))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        prometheus.scrape(f"127.0.0.1:{server.port}")
        prometheus.wait_until(lambda: prometheus.query('up{job="joiner"} == 1'), "a scrape")
        yield prometheus
        server.shutdown()
        server.server_close()
        thread.join()


def strip(series: dict[Series, float]) -> dict[Series, float]:
    """Return *series* without the labels that differ between the two ways."""
    left_out = {"__name__", "cluster", "instance", "job"}
    return {tuple(pair for pair in labels if pair[0] not in left_out): value for labels, value in series.items()}


@pytest.mark.parametrize("name", WRITTEN_METRICS)
def test_written_metric_is_stored_with_all_series_and_values(
    name: str, prometheus_with_writes: PrometheusServer
) -> None:
    expected = {tuple(pair for pair in labels if pair[1]): value for labels, value in compute_example_metrics()[name]}
    assert strip(prometheus_with_writes.query(f'{name}{{cluster="written"}}')) == expected


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_scraped_metric_equals_the_written_one(
    metric: Metric, prometheus_with_writes: PrometheusServer, prometheus_with_scrapes: PrometheusServer
) -> None:
    scraped_series = prometheus_with_scrapes.query(f'{metric.name}{{cluster="prod"}}')
    assert scraped_series
    if metric.name not in AGES:
        written_series = prometheus_with_writes.query(f'{metric.name}{{cluster="written"}}')
        assert strip(scraped_series) == pytest.approx(strip(written_series), rel=1e-9)


def build_body(name: str, age: timedelta = timedelta(0), value: float = 1.0) -> bytes:
    metrics: MetricSamples = {name: [((), value)]}
    [(_, body)] = encode_requests(metrics, "refused", NOW - age)
    return body


@pytest.mark.parametrize(
    "bodies",
    [
        pytest.param([b"not snappy"], id="malformed block"),
        pytest.param([b"\x03\x08abc"], id="malformed message"),
        pytest.param(
            [build_body("refused_old"), build_body("refused_old", age=timedelta(minutes=1))], id="out of order"
        ),
        pytest.param([build_body("refused_same"), build_body("refused_same", value=2.0)], id="duplicate sample"),
    ],
)
def test_prometheus_and_the_simulated_workspace_refuse_the_same_bodies(
    bodies: list[bytes], prometheus: PrometheusServer
) -> None:
    workspace = Workspace(lambda: datetime.now(UTC))
    for port in (RemoteWriteEndpoint(prometheus.write_url, lambda: None), build_workspace_port(workspace)):
        for body in bodies[:-1]:
            port.write(body)
        with pytest.raises(Invalid, match="HTTP 400"):
            port.write(bodies[-1])
        port.close_idle_connections()


@pytest.mark.parametrize(("name", "value"), [("Content-Type", "application/json"), ("Content-Encoding", "gzip")])
def test_prometheus_and_the_simulated_workspace_refuse_other_headers(
    name: str, value: str, prometheus: PrometheusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HEADERS, name, value)
    workspace = Workspace(lambda: datetime.now(UTC))
    for port in (RemoteWriteEndpoint(prometheus.write_url, lambda: None), build_workspace_port(workspace)):
        with pytest.raises(Fault, match="HTTP 415"):
            port.write(build_body("refused_headers"))
        port.close_idle_connections()


@pytest.mark.parametrize("expression", list_expressions())
def test_query_of_a_dashboard_has_a_result(
    expression: str, prometheus_with_writes: PrometheusServer, prometheus_with_scrapes: PrometheusServer
) -> None:
    del prometheus_with_writes
    query = expression.replace("$cluster", ".*").replace("$nodepool", ".*")
    values = prometheus_with_scrapes.query(query)
    clusters = {dict(labels).get("cluster") for labels, value in values.items() if not math.isnan(value)}
    assert clusters >= ({"prod"} if SNAPSHOT_AGE in query else {"prod", "written"})
