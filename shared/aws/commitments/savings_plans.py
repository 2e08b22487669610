"""The AWS Savings Plans API, which has one endpoint for all regions of a partition."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shared.aws.clients import Clients
from shared.aws.errors import translate_errors
from shared.model.core.units import parse_instant
from shared.model.ec2.commitments import SavingsPlan, SavingsPlanKind

_KINDS: Final[dict[str, SavingsPlanKind]] = {"Compute": "compute", "EC2Instance": "ec2-instance"}
"""The types of Savings Plans that cover EC2 instances."""
_PAGE_SIZE: Final = 1000
_LINUX_RATE_FILTERS: Final = {
    "productDescription": "Linux/UNIX",
    "tenancy": "shared",
    "serviceCode": "AmazonEC2",
    "operation": "RunInstances",
}
_INSTANCE_USAGE: Final = "BoxUsage:"
"""Usage of instances; unused capacity reservations have other usage types."""


class BotoSavingsPlans:
    """`shared.ports.aws.SavingsPlansService` over boto3."""

    def __init__(self, clients: Clients) -> None:
        """Make no call yet."""
        self._clients = clients

    def describe_savings_plans(self, region: str) -> tuple[SavingsPlan, ...]:
        """Call DescribeSavingsPlans for active ones, and DescribeSavingsPlanRates for each that can apply in *region*.

        Plans in another currency than USD are left out: prices are in USD.
        """
        items = self._list_items("describe_savings_plans", "savingsPlans", states=["active"])
        plans = [
            self._build_plan(item, region)
            for item in items
            if item["savingsPlanType"] in _KINDS
            and item.get("region") in (None, "", region)
            and item.get("currency") == "USD"
        ]
        return tuple(sorted(plans, key=lambda plan: plan.plan_id))

    def _build_plan(self, item: Mapping[str, Any], region: str) -> SavingsPlan:
        filters = [
            {"name": name, "values": [value]} for name, value in {"region": region, **_LINUX_RATE_FILTERS}.items()
        ]
        rates = self._list_items(
            "describe_savings_plan_rates", "searchResults", savingsPlanId=item["savingsPlanId"], filters=filters
        )
        return SavingsPlan(
            plan_id=item["savingsPlanId"],
            kind=_KINDS[item["savingsPlanType"]],
            commitment_usd_per_hour=float(item["commitment"]),
            instance_family=item.get("ec2InstanceFamily", ""),
            rates=tuple(sorted(dict(rate for entry in rates for rate in _parse_rate(entry)).items())),
            starts_at=parse_instant(item["start"]),
            ends_at=parse_instant(item["end"]),
        )

    def _list_items(self, call: str, key: str, **query: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - boto3's
        """Yield the items of all pages; botocore has no paginators for this API."""
        client = self._clients.get_retrying_client("savingsplans")
        token: dict[str, str] = {}
        while True:
            with translate_errors(f"savingsplans:{call}"):
                page = getattr(client, call)(**query, **token, maxResults=_PAGE_SIZE)
            yield from page[key]
            token = {"nextToken": page["nextToken"]} if page.get("nextToken") else {}
            if not token:
                return


def _parse_rate(entry: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the instance type and the rate of *entry*, if it is the rate of an instance."""
    properties = {item["name"]: item["value"] for item in entry["properties"]}
    if entry.get("unit") == "Hrs" and _INSTANCE_USAGE in entry["usageType"] and "instanceType" in properties:
        yield properties["instanceType"], float(entry["rate"])
