"""Prices of existing nodes by their labels."""

from shared.model.cloud_provider.instance_type import Catalog, InstanceType, Offering
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.core.metadata import ObjectMeta


class PriceList:
    """Prices of existing nodes, looked up by node labels."""

    def __init__(self, catalog: Catalog | None) -> None:
        """Index the prices of *catalog*."""
        self._catalog = catalog
        self._types_by_key: dict[tuple[str, str], dict[str, InstanceType]] = {}

    def get_price(self, meta: ObjectMeta, node_class: str) -> float:
        """Return the price of the first offering that matches the labels, available or not; 0 if there is none."""
        offering = self.find_offering(meta, node_class)
        return 0.0 if offering is None else offering.price_usd_per_hour

    def get_billed_price(self, meta: ObjectMeta, node_class: str) -> float:
        """Return the same price without the expected cost of interruptions."""
        offering = self.find_offering(meta, node_class)
        return 0.0 if offering is None else offering.billed_usd_per_hour

    def find_offering(self, meta: ObjectMeta, node_class: str) -> Offering | None:
        """Return the first offering that matches the labels, available or not; None if there is none."""
        instance_type = self.find_type(meta, node_class)
        zone_and_capacity_type = (meta.get_label(ZONE), meta.get_label(CAPACITY_TYPE))
        offerings = instance_type.offerings if instance_type is not None else ()
        return next(
            (offering for offering in offerings if (offering.zone, offering.capacity_type) == zone_and_capacity_type),
            None,
        )

    def find_type(self, meta: ObjectMeta, node_class: str) -> InstanceType | None:
        """Return the instance type that the labels name."""
        return self.list_types(node_class, meta.get_label(NODEPOOL)).get(meta.get_label(INSTANCE_TYPE))

    def list_types(self, node_class: str, node_pool: str) -> dict[str, InstanceType]:
        """Return the instance types of the catalog for a NodePool, by name."""
        key = (node_class, node_pool)
        if key not in self._types_by_key:
            instance_types = (
                self._catalog.get_instance_types(node_class, node_pool) if self._catalog is not None else ()
            )
            self._types_by_key[key] = {instance_type.name: instance_type for instance_type in instance_types}
        return self._types_by_key[key]
