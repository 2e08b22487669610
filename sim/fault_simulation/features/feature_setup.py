"""The optional features of a script, and the settings that switch them on."""

from typing import Final

import msgspec

GROUP: Final = "chaos"
"""Name of the group of clusters."""
OTHER_MEMBER: Final = "111122223333/us-east-1/other"
"""The other cluster of the group."""
GROUP_TABLE: Final = "arn:aws:dynamodb:us-east-1:111122223333:table/joiner-groups"
FEATURE_SETTINGS: Final = {
    "gangs": "on",
    "provisioning-requests": "on",
    "dynamic-resource-allocation": "on",
    "feature-gates": "NodeOverlay=true",
    "event-bus": "chaos",
    "group": GROUP,
    "group-limit-usd-per-hour": "1",
    "group-table": GROUP_TABLE,
    "money-limit-prices": "list",
}
"""The stack of every script with a feature, so that few templates are synthesized. `FeatureSetup.build_environment`
switches the other features off in the functions.
"""


class FeatureSetup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The features that are off by default, and that a script can use."""

    has_gangs: bool = msgspec.field(default=False, name="gangs")
    has_requests: bool = msgspec.field(default=False, name="requests")
    """Whether ProvisioningRequests are answered."""
    has_devices: bool = msgspec.field(default=False, name="devices")
    """Whether pods with ResourceClaims are planned."""
    canary: str = ""
    """The annotation `joiner.dev/canary` of the EC2NodeClass; empty: none."""
    image_minimum_age: str = msgspec.field(default="", name="age")
    group_limit_usd_per_hour: float = msgspec.field(default=0.0, name="group")
    """The limit that the cluster shares with another cluster; 0: no group."""
    has_event_bus: bool = msgspec.field(default=False, name="bus")

    @property
    def is_any_used(self) -> bool:
        """Whether any of the features is used."""
        return self != FeatureSetup()

    def list_names(self) -> tuple[str, ...]:
        """Return the names of the features that are used, as `--feature` has them."""
        used_by_name = {
            "gangs": self.has_gangs,
            "requests": self.has_requests,
            "devices": self.has_devices,
            "images": bool(self.canary or self.image_minimum_age),
            "group": bool(self.group_limit_usd_per_hour),
            "events": self.has_event_bus,
        }
        return tuple(name for name, is_used in used_by_name.items() if is_used)

    def build_environment(self) -> dict[str, str]:
        """Return the environment variables of the functions that differ from those of the stack."""
        gates = "StaticCapacity=true,NodeOverlay=true" if self.has_devices else "StaticCapacity=true"
        if not self.is_any_used:
            return {"FEATURE_GATES": gates}
        limit = self.group_limit_usd_per_hour
        return {
            "FEATURE_GATES": gates,
            "JOINER_GANGS": _format_switch(is_on=self.has_gangs),
            "JOINER_PROVISIONING_REQUESTS": _format_switch(is_on=self.has_requests),
            "JOINER_DYNAMIC_RESOURCE_ALLOCATION": _format_switch(is_on=self.has_devices),
            "JOINER_EVENT_BUS": FEATURE_SETTINGS["event-bus"] if self.has_event_bus else "",
            "JOINER_GROUP": GROUP if limit else "",
            "JOINER_GROUP_TABLE": GROUP_TABLE if limit else "",
            "JOINER_GROUP_LIMIT_USD_PER_HOUR": str(limit),
        }


FEATURE_NAMES: Final = FeatureSetup(
    has_gangs=True,
    has_requests=True,
    has_devices=True,
    canary="nodes=1",
    group_limit_usd_per_hour=1.0,
    has_event_bus=True,
).list_names()


def _format_switch(*, is_on: bool) -> str:
    return "on" if is_on else "off"
