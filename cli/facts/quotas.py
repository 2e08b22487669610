"""Quota facts for `joiner doctor`: limits from Service Quotas, and usage from CloudWatch."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from cli.facts.cluster import query_or_unseen
from cli.facts.model import QuotaUsage, ReadFailure
from cli.facts.quota_families import Quota
from shared.aws.clients import Clients
from shared.aws.errors import translate_errors
from shared.errors import NotFound

USAGE_WINDOW: Final = timedelta(minutes=30)
"""Usage is measured every five minutes, and published some minutes later."""
_PERIOD_SECONDS: Final = 300
Metric = Mapping[str, Any]


def read_quotas(clients: Clients, quotas: Iterable[Quota], now: datetime) -> dict[str, QuotaUsage | ReadFailure]:
    """Return the limit of each quota in *quotas* and, if CloudWatch has it, the usage."""
    quota_answers = {quota.name: query_or_unseen(partial(_read_quota, clients, quota.code)) for quota in quotas}
    metrics = {
        name: answer[1] for name, answer in quota_answers.items() if not isinstance(answer, ReadFailure) and answer[1]
    }
    usage = query_or_unseen(lambda: _read_usage(clients, metrics, now)) if metrics else {}
    usage_by_name = {} if isinstance(usage, ReadFailure) else usage
    return {
        name: answer if isinstance(answer, ReadFailure) else QuotaUsage(vcpus=answer[0], used=usage_by_name.get(name))
        for name, answer in quota_answers.items()
    }


def _read_quota(clients: Clients, code: str) -> tuple[float, Metric]:
    """Return the account's limit, else the AWS default; and the metric that measures the usage."""
    service, parameters = clients.get_retrying_client("service-quotas"), {"ServiceCode": "ec2", "QuotaCode": code}
    try:
        with translate_errors(f"servicequotas:GetServiceQuota {code}"):
            quota = service.get_service_quota(**parameters)["Quota"]
    except NotFound:
        with translate_errors(f"servicequotas:GetAWSDefaultServiceQuota {code}"):
            quota = service.get_aws_default_service_quota(**parameters)["Quota"]
    return float(quota["Value"]), quota.get("UsageMetric", {})


def _read_usage(clients: Clients, metrics: Mapping[str, Metric], now: datetime) -> dict[str, int]:
    """Return the newest value of each metric in *metrics*, by quota name."""
    names = list(metrics)
    queries = [_build_metric_query(f"used{number}", metrics[name]) for number, name in enumerate(names)]
    usage_by_name: dict[str, int] = {}
    with translate_errors("cloudwatch:GetMetricData"):
        paginator = clients.get_retrying_client("cloudwatch").get_paginator("get_metric_data")
        for page in paginator.paginate(MetricDataQueries=queries, StartTime=now - USAGE_WINDOW, EndTime=now):
            for result in page["MetricDataResults"]:
                if result["Values"]:
                    usage_by_name.setdefault(names[int(result["Id"].removeprefix("used"))], int(result["Values"][0]))
    return usage_by_name


def _build_metric_query(identity: str, metric: Metric) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in metric.get("MetricDimensions", {}).items()]
    namespace, name = metric.get("MetricNamespace", ""), metric.get("MetricName", "")
    measured = {"Namespace": namespace, "MetricName": name, "Dimensions": dimensions}
    statistic = metric.get("MetricStatisticRecommendation", "Maximum")
    stat = {"Metric": measured, "Period": _PERIOD_SECONDS, "Stat": statistic}
    return {"Id": identity, "MetricStat": stat, "ReturnData": True}
