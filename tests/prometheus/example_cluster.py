"""The example cluster, as `joiner metrics` reads it."""

import argparse
from datetime import timedelta
from functools import cache

from msgspec.structs import replace

from cli.metrics.command import add_to
from cli.metrics.exposition import Exposition, ExpositionReader, build_reader
from shared.decide.prometheus.compute_metrics import SNAPSHOT_AGE, compute_ages, compute_metrics
from shared.model.core.metrics.metric_samples import MetricSamples
from shared.model.karpenter.money_limit import MICRO_USD, MoneyPolicy
from shared.state.cluster_state import ClusterState

CATALOG_AGE = timedelta(minutes=10)
LIMIT_USD_PER_HOUR = 50
LIMIT = MoneyPolicy(cluster_limit=LIMIT_USD_PER_HOUR * MICRO_USD)


def build_example_reader() -> ExpositionReader:
    """Return the reader of the scrape target."""
    parser = argparse.ArgumentParser()
    add_to(parser)
    arguments = ["-f", "examples/cluster", "--instance-types", "examples/catalogue.json"]
    read = build_reader(parser.parse_args(arguments))

    def read_exposition() -> Exposition:
        """Read the example; its catalog has no time."""
        exposition = read()
        cluster = exposition.cluster
        assert cluster.catalog is not None
        catalog = replace(cluster.catalog, built_at=cluster.taken_at - CATALOG_AGE)
        return replace(exposition, cluster=replace(cluster, catalog=catalog))

    return read_exposition


@cache
def read_example() -> Exposition:
    """Return the metrics of the scrape target."""
    return build_example_reader()()


def compute_example_metrics() -> MetricSamples:
    """Return the metrics that `disrupt` writes with `remote-write-metrics: all`."""
    cluster = read_example().cluster
    ages = {name: samples for name, samples in compute_ages(cluster, cluster.taken_at).items() if name != SNAPSHOT_AGE}
    return {**ages, **compute_metrics(ClusterState(cluster), LIMIT)}
