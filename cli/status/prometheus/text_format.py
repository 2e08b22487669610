"""Metrics of a fleet in the Prometheus text format.

`joiner status -o prometheus` and `joiner metrics` print them, and `joiner metrics serve` serves them to Prometheus.
"""

from collections.abc import Iterable
from datetime import datetime

from shared.decide.prometheus.compute_metrics import compute_ages, compute_metrics
from shared.decide.prometheus.metric_table import METRIC_BY_NAME, METRIC_TYPE, Metric
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metrics.metric_samples import LabelPairs, MetricDetail, MetricSamples, Sample
from shared.model.karpenter.money_limit import NO_CLUSTER_LIMIT, MoneyPolicy
from shared.state.cluster_state import ClusterState


def render_metrics(
    cluster_state: ClusterState, money: MoneyPolicy = NO_CLUSTER_LIMIT, detail: MetricDetail = "all"
) -> str:
    """Return the metrics of the cluster, sorted; each family has a HELP and a TYPE line, all are gauges.

    *money* has the limit of the cluster in USD per hour.
    """
    return _render_families(compute_metrics(cluster_state, money, detail))


def render_ages(cluster: ClusterSnapshot, now: datetime) -> str:
    """Return the metrics with the age of the snapshot and of its catalog, if there is one, at *now*."""
    return _render_families(compute_ages(cluster, now))


def _render_families(samples_by_name: MetricSamples) -> str:
    return "".join(_render_family(METRIC_BY_NAME[name], samples) for name, samples in sorted(samples_by_name.items()))


def _render_family(metric: Metric, samples: Iterable[Sample]) -> str:
    lines = [f"{metric.name}{_render_labels(labels)} {value:.12g}\n" for labels, value in samples]
    head = f"# HELP {metric.name} {metric.help_text}\n# TYPE {metric.name} {METRIC_TYPE}\n"
    return "".join([head, *lines])


def _render_labels(labels: LabelPairs) -> str:
    label_text = ",".join(f'{key}="{_escape_label_value(value)}"' for key, value in labels)
    return f"{{{label_text}}}" if label_text else ""


def _escape_label_value(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
