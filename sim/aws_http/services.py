"""Calls of SSM, the Price List, EKS, Service Quotas, and Amazon Application Recovery Controller (ARC)."""

import json
import re
from typing import Any, Final

from shared.model.ec2.types import CapacityType
from sim.aws_http.filters_and_pages import build_page
from sim.aws_http.protocol import ApiDict, ApiError, NotOurs
from sim.cloud.cloud import Cloud
from sim.cloud.eventbridge_events import ACCOUNT_ID
from sim.cloud.resources.zonal_shifts import ListedShift

CAPACITY_TYPE_BY_QUOTA: Final[dict[str, CapacityType]] = {"L-1216C47A": "on-demand", "L-34B43A08": "spot"}
SPECIAL_FAMILY_QUOTAS: Final = frozenset(
    f"L-{code}"
    for code in (
        *("DB2E81BA", "3819A6DF", "417A185B", "7212CCBC", "C4BD4855", "1945791B", "B5D1601B", "2C3B7624", "6B0D517C"),
        *("6E869C2A", "85EED4F7", "74FC7D96", "88CF9481", "7295265B", "E3A00192", "43DA4232", "F7808C92"),
    )
)
"""vCPU quotas of special instance families, which cannot be changed here."""
DEFAULT_VCPU_QUOTA: Final = 100_000
"""The quota of an account if none was set."""
_SUPPORTED_ARN: Final = re.compile(r"arn:[a-z-]+:(autoscaling|eks|elasticloadbalancing):([a-z0-9-]+):\d{12}:\S+")


class ServicesApi:
    """Handlers of the calls; each takes the parameters of a call and returns its result."""

    def __init__(self, cloud: Cloud) -> None:
        """Use *cloud* as the backend."""
        self._cloud = cloud

    def get_parameter(self, parameters: ApiDict) -> ApiDict:
        """GetParameter (SSM).

        Raises:
            NotOurs: it is not one of the public parameters of EKS.
        """
        name = parameters["Name"]
        if name not in self._cloud.images.parameters:
            raise NotOurs
        value = self._cloud.images.get_parameter(name)
        return {"Parameter": {"Name": name, "Type": "String", "Value": value, "Version": 1}}

    def get_products(self, parameters: ApiDict) -> ApiDict:
        """GetProducts (pricing): Linux on-demand, shared tenancy, or dedicated if the type is metal."""
        filter_values = {filter_item["Field"]: filter_item["Value"] for filter_item in parameters.get("Filters", ())}
        is_own_region = filter_values.get("regionCode", self._cloud.region) == self._cloud.region
        is_metal = filter_values.get("tenancy") == "Dedicated"
        type_names = (
            [name for name in self._cloud.prices.on_demand if (".metal" in name) is is_metal] if is_own_region else []
        )
        items = [_build_product(name, self._cloud.prices.on_demand[name]) for name in sorted(type_names)]
        products_page = build_page([{"item": item} for item in items], parameters, "PriceList", 100)
        return {
            **products_page,
            "FormatVersion": "aws_v1",
            "PriceList": [product["item"] for product in products_page["PriceList"]],
        }

    def get_managed_resource(self, parameters: ApiDict) -> ApiDict:
        """GetManagedResource, which takes an ARN in the region of the endpoint.

        Raises:
            ApiError: the identifier is not the ARN of a resource that ARC supports.
            NotFound: ARC does not manage the resource.
        """
        identifier, shifts = parameters["resourceIdentifier"], self._cloud.zonal_shifts
        match = _SUPPORTED_ARN.fullmatch(identifier)
        if match is None or match[2] != self._cloud.region:
            raise ApiError("ValidationException", f"{identifier} is not a valid resource identifier")
        shifts.check_managed(identifier)
        listed_shifts = shifts.list_shifts(self._cloud.clock.get_time())
        away_ids = {listed.shift.zone_id for listed in listed_shifts if listed.is_applied}
        zone_ids = sorted({subnet.zone_id for subnet in self._cloud.network.subnets.values()})
        return {
            "arn": identifier,
            "name": identifier.rpartition("/")[2],
            "appliedWeights": {zone_id: float(zone_id not in away_ids) for zone_id in zone_ids},
            "zonalShifts": [_encode_shift(listed, identifier) for listed in listed_shifts if listed.shift_id],
            "autoshifts": [_encode_autoshift(listed) for listed in listed_shifts if not listed.shift_id],
            "zonalAutoshiftStatus": "DISABLED",
        }

    def describe_cluster(self, parameters: ApiDict) -> ApiDict:
        """DescribeCluster (EKS).

        Raises:
            NotOurs: it is another cluster.
        """
        facts = self._cloud.facts
        if parameters["name"] != facts.name:
            raise NotOurs
        return {
            "cluster": {
                "name": facts.name,
                "arn": f"arn:aws:eks:{self._cloud.region}:{ACCOUNT_ID}:cluster/{facts.name}",
                "endpoint": facts.endpoint,
                "certificateAuthority": {"data": facts.certificate_authority},
                "version": facts.version,
                "status": "ACTIVE",
                "kubernetesNetworkConfig": {"serviceIpv4Cidr": facts.service_cidr, "ipFamily": "ipv4"},
                "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"},
                "resourcesVpcConfig": {"endpointPublicAccess": True, "publicAccessCidrs": ["0.0.0.0/0"]},
            }
        }

    def get_service_quota(self, parameters: ApiDict) -> ApiDict:
        """GetServiceQuota: vCPUs of instances.

        Raises:
            NotOurs: it is another quota.
        """
        capacity_type = CAPACITY_TYPE_BY_QUOTA.get(parameters["QuotaCode"])
        if capacity_type is None and parameters["QuotaCode"] not in SPECIAL_FAMILY_QUOTAS:
            raise NotOurs
        vcpus = None if capacity_type is None else self._cloud.pools.get_quota(capacity_type)
        return {
            "Quota": {
                "QuotaCode": parameters["QuotaCode"],
                "Value": float(DEFAULT_VCPU_QUOTA if vcpus is None else vcpus),
            }
        }


def _build_product(name: str, usd_per_hour: float) -> str:
    price = {"unit": "Hrs", "pricePerUnit": {"USD": f"{usd_per_hour:.10f}"}}
    return json.dumps(
        {
            "product": {"productFamily": "Compute Instance", "attributes": {"instanceType": name}},
            "serviceCode": "AmazonEC2",
            "terms": {"OnDemand": {f"{name}.JRTCKXETXF": {"priceDimensions": {f"{name}.6YS6EN2CT7": price}}}},
        }
    )


def _encode_autoshift(listed: ListedShift) -> dict[str, Any]:
    return {
        "appliedStatus": "APPLIED" if listed.is_applied else "NOT_APPLIED",
        "awayFrom": listed.shift.zone_id,
        "startTime": listed.shift.started_at,
    }


def _encode_shift(listed: ListedShift, identifier: str) -> dict[str, Any]:
    return _encode_autoshift(listed) | {
        "zonalShiftId": listed.shift_id,
        "resourceIdentifier": identifier,
        "expiryTime": listed.shift.expires_at,
        "comment": listed.shift.comment,
        "shiftType": "ZONAL_SHIFT",
    }
