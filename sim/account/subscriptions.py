"""Subscriptions of functions to log groups, which are only kept: whoever runs functions reads them."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from sim.clock import Clock
from sim.http.protocol import ApiError
from sim.http.queries import Wire

Answer: TypeAlias = dict[str, Any]


class Holder(Protocol):
    """What is needed of the account."""

    clock: Clock

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3's clients have no types
        """Answer the deployer's client."""


class Subscriptions:
    """All of the account's, by group and name."""

    def __init__(self, account: Holder) -> None:
        """Begin without any."""
        self._account = account
        self._filters: dict[tuple[str, str], Answer] = {}
        self.handlers: Mapping[str, Callable[[Wire], Answer]] = {
            "DeleteSubscriptionFilter": self._delete,
            "DescribeSubscriptionFilters": self._describe,
            "PutSubscriptionFilter": self._put,
        }

    def _put(self, said: Wire) -> Answer:
        group = said["logGroupName"]
        found = self._account.client("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        if group not in [one["logGroupName"] for one in found]:
            raise ApiError("ResourceNotFoundException", "The specified log group does not exist.")
        made = round(self._account.clock.now().timestamp() * 1000)
        self._filters[group, said["filterName"]] = {**said, "creationTime": made}
        return {}

    def _describe(self, said: Wire) -> Answer:
        every = [one for (group, _), one in sorted(self._filters.items()) if group == said["logGroupName"]]
        return {"subscriptionFilters": every}

    def _delete(self, said: Wire) -> Answer:
        key = said["logGroupName"], said["filterName"]
        if key not in self._filters:
            raise ApiError("ResourceNotFoundException", "The specified subscription filter does not exist.")
        del self._filters[key]
        return {}
