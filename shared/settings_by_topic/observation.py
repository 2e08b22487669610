"""Settings of the detection of pending pods, of metrics, reports, records and caches."""

from typing import Annotated, Literal

import msgspec

from shared import settings_text
from shared.model.core.metrics.metric_samples import MetricDetail
from shared.settings_by_topic.disruption import VoluntaryDisruptionSettings
from shared.settings_text import TextForm


class ObservationSettings(VoluntaryDisruptionSettings, frozen=True, kw_only=True):
    """Settings of the detection of pending pods, of metrics, reports, records and caches."""

    reaction: Literal["tick", "watch", "logs"] = "watch"
    """How pending pods are detected. `watch`: by an additional function, within two seconds (in an idle cluster, within
    four); it costs about $1/month. `tick`: by `provision`, every minute, at no additional cost. `logs`: from the log of
    kube-scheduler, which must be enabled in the EKS control plane. docs/reaction.md compares delays and prices."""
    metrics: Literal["alarms", "all"] = "alarms"
    """Metrics that are published to CloudWatch: `alarms`, only those that the alarms need, while they have a value; or
    `all`, at $0.30/month each. The dashboard needs neither."""
    cost_label: Annotated[
        str,
        msgspec.Meta(pattern=r"^(?a:([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[0-9A-Za-z]([\w.-]{0,61}[0-9A-Za-z])?)?\Z"),
        TextForm(allowed="the key of a label, like billing-team or example.com/team"),
    ] = ""
    """Node label by which the daily cost report groups costs, in addition to NodePool and instance type."""
    report_topic: settings_text.TopicArn = ""
    """ARN of the SNS topic that receives the daily cost report, in the region of the stack. It can be the topic of the
    alarms. If the topic is encrypted, its KMS key must allow the role of `catalog`: docs/cost.md."""
    event_bus: settings_text.EventBus = ""
    """Name or ARN of the EventBridge event bus that receives events of Joiner, such as launched and interrupted nodes,
    in the region of the stack. The functions get the permission events:PutEvents on this bus: docs/guide/events.md.
    Empty: no events."""
    remote_write_url: settings_text.RemoteWriteUrl = ""
    """Remote write URL of Prometheus to which `disrupt` writes metrics once a minute. Requests to a workspace of Amazon
    Managed Service for Prometheus are signed, and `disrupt` gets the permission aps:RemoteWrite on this workspace.
    Requests to other URLs have no authentication. docs/guide/prometheus.md has the cost. Empty: no metrics are
    written."""
    remote_write_metrics: MetricDetail = "summary"
    """Metrics that are written to `remote-write-url`: `summary`, those without a series for each node; `nodes`, also
    those; `all`, also those with a series for each pod and each offering. Amazon Managed Service for Prometheus charges
    for each sample."""
    tracing: Literal["off", "on"] = "off"
    """`on`: AWS X-Ray traces the functions: the stages of each cycle, and its calls to AWS and Kubernetes. `off`: the
    functions have neither the tracing library nor the permission to send traces. X-Ray charges for traces:
    docs/guide/tracing.md."""
    snapshots: Literal["off", "on"] = "on"
    """`on`: the inputs of each decision are stored with its journal entry, for `joiner replay`: requests, labels,
    affinities and nodes of pods, and the nodes, but no containers, commands or environment variables. `off`: none."""
    shared_cache: Literal["off", "on"] = "off"
    """For large clusters. `on`: if a list of pods, nodes or other objects has 16 MiB or more, functions store it in the
    bucket about once a minute. New containers load it and read only later changes. The functions get the permission to
    read and write these objects. `off`: new containers list all objects. Cost: docs/api-server-cost.md."""
