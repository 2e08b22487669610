"""What `joiner doctor` sees of quotas: what Service Quotas allows, and what CloudWatch counts of it."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from cli.checks.facts import Allowed, Unseen
from cli.checks.families import Quota
from cli.doctor_cluster import seen
from shared.aws.clients import Clients
from shared.aws.errors import faults
from shared.errors import Gone

LATELY: Final = timedelta(minutes=30)
"""Usage is counted every five minutes, and told some minutes later."""
_PERIOD: Final = 300
Metric = Mapping[str, Any]


def allowed(clients: Clients, quotas: Iterable[Quota], now: datetime) -> dict[str, Allowed | Unseen]:
    """Answer what may run by each of *quotas* and, where CloudWatch tells, what runs."""
    told = {one.name: seen(partial(_told, clients, one.code)) for one in quotas}
    metrics = {name: one[1] for name, one in told.items() if not isinstance(one, Unseen) and one[1]}
    used = seen(lambda: _used(clients, metrics, now)) if metrics else {}
    counted = {} if isinstance(used, Unseen) else used
    return {
        name: one if isinstance(one, Unseen) else Allowed(vcpus=one[0], used=counted.get(name))
        for name, one in told.items()
    }


def _told(clients: Clients, code: str) -> tuple[float, Metric]:
    """Answer what applies to the account, else what AWS gives to all; and by which metric it is counted."""
    service, wanted = clients.patient("service-quotas"), {"ServiceCode": "ec2", "QuotaCode": code}
    try:
        with faults(f"servicequotas:GetServiceQuota {code}"):
            said = service.get_service_quota(**wanted)["Quota"]
    except Gone:
        with faults(f"servicequotas:GetAWSDefaultServiceQuota {code}"):
            said = service.get_aws_default_service_quota(**wanted)["Quota"]
    return float(said["Value"]), said.get("UsageMetric", {})


def _used(clients: Clients, metrics: Mapping[str, Metric], now: datetime) -> dict[str, int]:
    """Answer the newest count of each of *metrics*, by quota."""
    names = list(metrics)
    queries = [_query(f"used{number}", metrics[name]) for number, name in enumerate(names)]
    found: dict[str, int] = {}
    with faults("cloudwatch:GetMetricData"):
        pager = clients.patient("cloudwatch").get_paginator("get_metric_data")
        for page in pager.paginate(MetricDataQueries=queries, StartTime=now - LATELY, EndTime=now):
            for one in page["MetricDataResults"]:
                if one["Values"]:
                    found.setdefault(names[int(one["Id"].removeprefix("used"))], int(one["Values"][0]))
    return found


def _query(identity: str, metric: Metric) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in metric.get("MetricDimensions", {}).items()]
    measured = {
        "Namespace": metric.get("MetricNamespace", ""),
        "MetricName": metric.get("MetricName", ""),
        "Dimensions": dimensions,
    }
    statistic = metric.get("MetricStatisticRecommendation", "Maximum")
    return {
        "Id": identity,
        "MetricStat": {"Metric": measured, "Period": _PERIOD, "Stat": statistic},
        "ReturnData": True,
    }
