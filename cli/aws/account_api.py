"""The AWS APIs that commands read: those of the caller's account over HTTP, or those of the embedded cloud."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from shared.ports.aws import Ec2, Eks, ParameterStore, PricingService

if TYPE_CHECKING:
    from shared.aws.clients import Clients


class AccountApis(msgspec.Struct, frozen=True, kw_only=True):
    """The APIs of one account in one region."""

    region: str
    queried_at: datetime
    """The account's time, in UTC: prices and deprecations are those of this instant."""
    ec2: Ec2
    parameters: ParameterStore
    prices: PricingService
    eks: Eks
    list_published_prices: Callable[[str], Mapping[str, float]]
    """Return the on-demand prices of any region, USD per hour by instance type."""
    call_counts: Callable[[], Mapping[str, int]] | None
    """Return the number of AWS API calls so far by operation; None for the embedded cloud, which makes no calls."""


def build_account_apis(clients: "Clients", queried_at: datetime) -> AccountApis:
    """Return the APIs that *clients* call."""
    from shared.aws.ec2.client import BotoEc2  # noqa: PLC0415 - boto3 takes half a second, and the embedded cloud none
    from shared.aws.eks import BotoEks  # noqa: PLC0415
    from shared.aws.on_demand_prices import BotoPricingService  # noqa: PLC0415
    from shared.aws.ssm import BotoParameterStore  # noqa: PLC0415

    prices = BotoPricingService(clients)
    return AccountApis(
        region=clients.region,
        queried_at=queried_at,
        ec2=BotoEc2(clients, lambda: queried_at),
        parameters=BotoParameterStore(clients),
        prices=prices,
        eks=BotoEks(clients),
        list_published_prices=prices.list_published_prices,
        call_counts=clients.get_call_counts,
    )
