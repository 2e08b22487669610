"""The APIs of the embedded cloud in this process: no server, no HTTP, and boto3 only to check requests.

Contract tests show that the embedded cloud gives the same answers in process and over HTTP. AWS's rules for requests
are checked here as well: what AWS would reject in a request that the user's input determines fails in the same way.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from cli.aws.account_api import AccountApis
from cli.terminal.errors import InputError
from shared.ports.aws import PricingService

if TYPE_CHECKING:
    from sim.cloud.cloud import Cloud

DEFAULT_REGION: Final = "us-east-1"
PRICE_LIST_DECIMALS: Final = 10
"""Decimals of prices in the AWS Price List."""


def build_embedded_apis(region: str, cluster: str) -> AccountApis:
    """Return the APIs of a new cloud in *region*, with subnets and a security group tagged for *cluster*.

    Raises:
        InputError: The embedded cloud has no such region.
    """
    from sim.cloud.in_process_aws import CloudEc2, CloudEks, CloudParameters, CloudPricing  # noqa: PLC0415

    cloud = _build_cloud(region, cluster)
    ports = {"ec2": CloudEc2(cloud), "parameters": CloudParameters(cloud), "eks": CloudEks(cloud)}
    get_checked_ports = cache(lambda: _add_request_checks(ports, cloud))
    checked_ports = {name: cast("Any", _LazilyCheckedPort(name, ports[name], get_checked_ports)) for name in ports}
    prices = _RoundedPrices(CloudPricing(cloud))
    return AccountApis(
        region=region,
        queried_at=cloud.clock.get_time(),
        prices=prices,
        list_published_prices=prices.get_on_demand_prices,
        call_counts=None,
        **checked_ports,
    )


def _build_cloud(region: str, cluster: str) -> "Cloud":
    from sim.cloud.cloud import Cloud  # noqa: PLC0415
    from sim.time.virtual_clock import Clock  # noqa: PLC0415

    try:
        return Cloud(Clock(), region=region, cluster=cluster)
    except (OSError, ValueError):
        raise InputError(f"--region {region}: the embedded cloud has no such region: try {DEFAULT_REGION}") from None


def _add_request_checks(ports: Mapping[str, object], cloud: "Cloud") -> Mapping[str, object]:
    from shared.aws.ec2.client import BotoEc2  # noqa: PLC0415 - boto3 takes a third of a second
    from shared.aws.eks import BotoEks  # noqa: PLC0415
    from shared.aws.ssm import BotoParameterStore  # noqa: PLC0415
    from sim.aws_rules.clients import RecordingClients  # noqa: PLC0415
    from sim.aws_rules.world_ports import RequestChecks  # noqa: PLC0415

    checks = RequestChecks()
    clients = RecordingClients(cloud.region, "joiner", checks.log)
    adapters = {
        "ec2": BotoEc2(clients, cloud.clock.get_time),
        "parameters": BotoParameterStore(clients),
        "eks": BotoEks(clients),
    }
    return {name: checks.wrap_port(("joiner", name), port, adapters[name]) for name, port in ports.items()}


class _LazilyCheckedPort:
    """A port that checks calls with arguments; other calls always make the same requests, which tests check."""

    def __init__(self, name: str, port: object, get_checked_ports: Callable[[], Mapping[str, object]]) -> None:
        self._name, self._port, self._get_checked_ports = name, port, get_checked_ports

    def __getattr__(self, method: str) -> Any:  # noqa: ANN401 - stands for any port
        def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - any method
            port = self._get_checked_ports()[self._name] if arguments or options else self._port
            return getattr(port, method)(*arguments, **options)

        return call


class _RoundedPrices:
    """A price list with the decimals of the AWS Price List."""

    def __init__(self, prices: PricingService) -> None:
        self._prices = prices

    def get_on_demand_prices(self, region: str) -> Mapping[str, float]:
        """Return USD per hour by instance type."""
        prices = self._prices.get_on_demand_prices(region)
        return {name: round(price, PRICE_LIST_DECIMALS) for name, price in prices.items()}
