"""SSM, the pricing service and EKS on the wire."""

import json
from typing import Final

from shared.model.ec2 import CapacityType
from sim.cloud.cloud import Cloud
from sim.cloud.events import ACCOUNT
from sim.http.protocol import NotOurs
from sim.http.queries import Wire, page

QUOTAS: Final[dict[str, CapacityType]] = {"L-1216C47A": "on-demand", "L-34B43A08": "spot"}
SPECIAL: Final = frozenset(
    f"L-{code}"
    for code in (
        *("DB2E81BA", "3819A6DF", "417A185B", "7212CCBC", "C4BD4855", "1945791B", "B5D1601B", "2C3B7624", "6B0D517C"),
        *("6E869C2A", "85EED4F7", "74FC7D96", "88CF9481", "7295265B", "E3A00192", "43DA4232", "F7808C92"),
    )
)
"""Quotas of vCPUs of special families, which nobody can set here."""
PLENTY: Final = 100_000
"""What an account has to which nobody gave a quota."""


class ServiceCalls:
    """The handlers; each takes the call's parameters and answers its result."""

    def __init__(self, cloud: Cloud) -> None:
        """Answer from *cloud*."""
        self._cloud = cloud

    def get_parameter(self, said: Wire) -> Wire:
        """GetParameter (SSM).

        Raises:
            NotOurs: it is none of EKS's public parameters.
        """
        name = said["Name"]
        if name not in self._cloud.images.parameters:
            raise NotOurs
        value = self._cloud.images.parameter(name)
        return {"Parameter": {"Name": name, "Type": "String", "Value": value, "Version": 1}}

    def get_products(self, said: Wire) -> Wire:
        """GetProducts (pricing): Linux on demand, shared tenancy, or dedicated where the type is metal."""
        asked = {each["Field"]: each["Value"] for each in said.get("Filters", ())}
        here = asked.get("regionCode", self._cloud.region) == self._cloud.region
        metal = asked.get("tenancy") == "Dedicated"
        chosen = [name for name in self._cloud.prices.on_demand if (".metal" in name) is metal] if here else []
        items = [_product(name, self._cloud.prices.on_demand[name]) for name in sorted(chosen)]
        found = page([{"item": item} for item in items], said, "PriceList", 100)
        return {**found, "FormatVersion": "aws_v1", "PriceList": [each["item"] for each in found["PriceList"]]}

    def describe_cluster(self, said: Wire) -> Wire:
        """DescribeCluster (EKS).

        Raises:
            NotOurs: it is another cluster.
        """
        facts = self._cloud.facts
        if said["name"] != facts.name:
            raise NotOurs
        return {
            "cluster": {
                "name": facts.name,
                "arn": f"arn:aws:eks:{self._cloud.region}:{ACCOUNT}:cluster/{facts.name}",
                "endpoint": facts.endpoint,
                "certificateAuthority": {"data": facts.certificate_authority},
                "version": facts.version,
                "status": "ACTIVE",
                "kubernetesNetworkConfig": {"serviceIpv4Cidr": facts.service_cidr, "ipFamily": "ipv4"},
                "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"},
                "resourcesVpcConfig": {"endpointPublicAccess": True, "publicAccessCidrs": ["0.0.0.0/0"]},
            }
        }

    def get_service_quota(self, said: Wire) -> Wire:
        """GetServiceQuota: vCPUs of instances.

        Raises:
            NotOurs: it is another quota.
        """
        kind = QUOTAS.get(said["QuotaCode"])
        if kind is None and said["QuotaCode"] not in SPECIAL:
            raise NotOurs
        vcpus = None if kind is None else self._cloud.pools.quota(kind)
        return {"Quota": {"QuotaCode": said["QuotaCode"], "Value": float(PLENTY if vcpus is None else vcpus)}}


def _product(name: str, usd_per_hour: float) -> str:
    price = {"unit": "Hrs", "pricePerUnit": {"USD": f"{usd_per_hour:.10f}"}}
    return json.dumps(
        {
            "product": {"productFamily": "Compute Instance", "attributes": {"instanceType": name}},
            "serviceCode": "AmazonEC2",
            "terms": {"OnDemand": {f"{name}.JRTCKXETXF": {"priceDimensions": {f"{name}.6YS6EN2CT7": price}}}},
        }
    )
