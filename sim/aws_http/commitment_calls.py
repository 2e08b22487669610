"""Calls about commitments: DescribeReservedInstances of EC2, the Savings Plans API, and the role of a payer account."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from shared.errors import Forbidden
from shared.model.ec2.commitments import ReservedInstances, SavingsPlan
from sim.aws_http.filters_and_pages import filter_items
from sim.aws_http.protocol import ApiDict, ApiError
from sim.cloud.cloud import Cloud
from sim.cloud.eventbridge_events import ACCOUNT_ID
from sim.cloud.resources.commitments import AccountCommitments
from sim.iam.payer_role import check_role_use, get_trusted_principal

MAX_PAGE_SIZE: Final = 1000
_RESERVED_FILTER_PATHS: Final = {
    "availability-zone": "AvailabilityZone",
    "instance-type": "InstanceType",
    "product-description": "ProductDescription",
    "reserved-instances-id": "ReservedInstancesId",
    "scope": "Scope",
    "state": "State",
}
_PLAN_FILTER_PATHS: Final = {
    "region": "region",
    "ec2-instance-family": "ec2InstanceFamily",
    "savings-plan-type": "savingsPlanType",
    "payment-option": "paymentOption",
}
_PLAN_TYPES: Final = {"compute": "Compute", "ec2-instance": "EC2Instance"}
PAYER_ACCESS_KEY: Final = "ASIAPAYERACCOUNT0000"
"""Access key of the session: calls with it are answered by the payer account."""
_FORBIDDEN_STATUS: Final = 403
_ON_DEMAND_OPERATION: Final = "RunInstances"


class CommitmentApi:
    """Handlers of the calls; each takes the parameters of a call and returns its result."""

    def __init__(self, cloud: Cloud, commitments: AccountCommitments) -> None:
        """Use *commitments*, of the account of *cloud* or of its payer account, as the backend."""
        self._cloud, self._commitments = cloud, commitments

    def describe_reserved_instances(self, parameters: ApiDict) -> ApiDict:
        """DescribeReservedInstances, which has no pages.

        Raises:
            ApiError: one of the ids does not exist.
        """
        items = [_encode_reserved(item) for item in self._commitments.list_reserved(self._cloud.clock.get_time())]
        ids = parameters.get("ReservedInstancesIds", ())
        missing = set(ids) - {item["ReservedInstancesId"] for item in items}
        if missing:
            text = f"The reserved instance IDs '{', '.join(sorted(missing))}' do not exist"
            raise ApiError("InvalidReservedInstancesId", text)
        items = [item for item in items if not ids or item["ReservedInstancesId"] in ids]
        return {"ReservedInstances": filter_items(items, parameters, _RESERVED_FILTER_PATHS)}

    def describe_savings_plans(self, parameters: ApiDict) -> ApiDict:
        """DescribeSavingsPlans; all plans are active."""
        plans = self._commitments.list_all_plans(self._cloud.clock.get_time())
        items = [_encode_plan(plan, region) for plan, region in plans]
        ids = parameters.get("savingsPlanIds", ())
        items = [item for item in items if not ids or item["savingsPlanId"] in ids]
        if "active" not in parameters.get("states", ["active"]):
            items = []
        filters = [{"Name": item["name"], "Values": item.get("values", ())} for item in parameters.get("filters", ())]
        return _build_page(filter_items(items, {"Filters": filters}, _PLAN_FILTER_PATHS), parameters, "savingsPlans")

    def describe_savings_plan_rates(self, parameters: ApiDict) -> ApiDict:
        """DescribeSavingsPlanRates, for instances only.

        Raises:
            ApiError: the plan does not exist.
        """
        plans = self._commitments.list_all_plans(self._cloud.clock.get_time())
        plan = next((plan for plan, _ in plans if plan.plan_id == parameters["savingsPlanId"]), None)
        if plan is None:
            raise ApiError(
                "ResourceNotFoundException", f"Savings Plan {parameters['savingsPlanId']} does not exist", 404
            )
        rates = [
            rate
            for name, usd_per_hour in plan.rates
            for rate in _encode_rates(name, usd_per_hour, self._cloud.region)
            if all(
                _get_rate_value(rate, item["name"]) in item.get("values", ()) for item in parameters.get("filters", ())
            )
        ]
        return {"savingsPlanId": plan.plan_id, **_build_page(rates, parameters, "searchResults")}


def assume_payer_role(cloud: Cloud, parameters: ApiDict) -> ApiDict:
    """AssumeRole of AWS STS, for the role of the payer account.

    The server does not know which function calls. So the caller counts as the principal that the trust policy names.
    The embedded world checks the permissions and the role of the function (`sim.authorization`).

    Raises:
        ApiError: the role does not exist, or does not trust the caller with this external ID.
    """
    role_arn, role = parameters["RoleArn"], cloud.payer.role
    caller_arn = get_trusted_principal(role) if role is not None else "*"
    try:
        check_role_use(role, role_arn, caller_arn, parameters.get("ExternalId", ""))
    except Forbidden as fault:
        raise ApiError("AccessDenied", str(fault), _FORBIDDEN_STATUS) from fault
    session = parameters["RoleSessionName"]
    return {
        "Credentials": {
            "AccessKeyId": PAYER_ACCESS_KEY,
            "SecretAccessKey": "secret",
            "SessionToken": "token",
            "Expiration": cloud.clock.get_time(),
        },
        "AssumedRoleUser": {"AssumedRoleId": f"AROAPAYER:{session}", "Arn": f"{role_arn}/{session}"},
    }


def _build_page(items: Sequence[ApiDict], parameters: ApiDict, key: str) -> dict[str, Any]:
    size, start = parameters.get("maxResults") or MAX_PAGE_SIZE, int(parameters.get("nextToken") or 0)
    next_token = {"nextToken": str(start + size)} if start + size < len(items) else {}
    return {key: list(items[start : start + size]), **next_token}


def _encode_reserved(item: ReservedInstances) -> ApiDict:
    zone = {"AvailabilityZone": item.zone} if item.zone else {}
    starts_at, ends_at = _get_term(item)
    return {
        "ReservedInstancesId": item.reservation_id,
        "InstanceType": item.instance_type,
        "InstanceCount": item.count,
        "InstanceTenancy": "default",
        "ProductDescription": "Linux/UNIX",
        "State": "active",
        "Scope": "Availability Zone" if item.zone else "Region",
        "OfferingClass": "standard",
        "OfferingType": "No Upfront",
        "CurrencyCode": "USD",
        "FixedPrice": 0.0,
        "UsagePrice": 0.0,
        "RecurringCharges": [{"Amount": item.usd_per_hour, "Frequency": "Hourly"}],
        "Start": starts_at,
        "End": ends_at,
        "Duration": int((ends_at - starts_at).total_seconds()),
        **zone,
    }


def _get_term(item: ReservedInstances | SavingsPlan) -> tuple[datetime, datetime]:
    """Return the start and the end of the term of *item*.

    Raises:
        ValueError: it has no term.
    """
    if item.starts_at is None or item.ends_at is None:
        raise ValueError(f"{item.commitment_id} has no term")
    return item.starts_at, item.ends_at


def _encode_plan(plan: SavingsPlan, region: str) -> ApiDict:
    starts_at, ends_at = _get_term(plan)
    instance_plan = {"region": region, "ec2InstanceFamily": plan.instance_family} if region else {}
    return {
        "savingsPlanId": plan.plan_id,
        "savingsPlanArn": f"arn:aws:savingsplans::{ACCOUNT_ID}:savingsplan/{plan.plan_id}",
        "savingsPlanType": _PLAN_TYPES[plan.kind],
        "productTypes": ["EC2"] if region else ["EC2", "Fargate", "Lambda"],
        "state": "active",
        "currency": "USD",
        "commitment": f"{plan.commitment_usd_per_hour:.8f}",
        "paymentOption": "No Upfront",
        "start": f"{starts_at:%Y-%m-%dT%H:%M:%S.000Z}",
        "end": f"{ends_at:%Y-%m-%dT%H:%M:%S.000Z}",
        **instance_plan,
    }


def _encode_rates(name: str, usd_per_hour: float, region: str) -> list[Mapping[str, Any]]:
    """Return the rate of an instance, and that of an unused capacity reservation, which is the same."""
    values = {"region": region, "instanceType": name, "productDescription": "Linux/UNIX", "tenancy": "shared"}
    return [
        {
            "rate": f"{usd_per_hour:.6f}",
            "currency": "USD",
            "unit": "Hrs",
            "productType": "EC2",
            "serviceCode": "AmazonEC2",
            "usageType": f"{usage}:{name}",
            "operation": _ON_DEMAND_OPERATION,
            "properties": [{"name": key, "value": value} for key, value in values.items()],
        }
        for usage in ("BoxUsage", "UnusedBox")
    ]


def _get_rate_value(rate: Mapping[str, Any], name: str) -> str:
    properties = {item["name"]: item["value"] for item in rate["properties"]}
    return str(properties.get(name, rate.get(name, "")))
