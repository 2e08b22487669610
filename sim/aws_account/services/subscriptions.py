"""Subscription filters of log groups: only stored, the code that runs functions reads them."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sim.aws_account.protocols import AccountServices
from sim.aws_http.filters_and_pages import ApiDict
from sim.aws_http.protocol import ApiError

Response: TypeAlias = dict[str, Any]


class SubscriptionFilterApi:
    """The subscription filters of the account, by log group and name."""

    def __init__(self, account: AccountServices) -> None:
        """Start without subscription filters."""
        self._account = account
        self._filters: dict[tuple[str, str], Response] = {}
        self.handlers: Mapping[str, Callable[[ApiDict], Response]] = {
            "DeleteSubscriptionFilter": self._delete,
            "DescribeSubscriptionFilters": self._describe,
            "PutSubscriptionFilter": self._put,
        }

    def _put(self, request: ApiDict) -> Response:
        group = request["logGroupName"]
        log_groups = self._account.get_client("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        if group not in [log_group["logGroupName"] for log_group in log_groups]:
            raise ApiError("ResourceNotFoundException", "The specified log group does not exist.")
        creation_time = round(self._account.clock.get_time().timestamp() * 1000)
        self._filters[group, request["filterName"]] = {**request, "creationTime": creation_time}
        return {}

    def _describe(self, request: ApiDict) -> Response:
        filters = [
            subscription_filter
            for (group, _), subscription_filter in sorted(self._filters.items())
            if group == request["logGroupName"]
        ]
        return {"subscriptionFilters": filters}

    def _delete(self, request: ApiDict) -> Response:
        key = request["logGroupName"], request["filterName"]
        if key not in self._filters:
            raise ApiError("ResourceNotFoundException", "The specified subscription filter does not exist.")
        del self._filters[key]
        return {}
