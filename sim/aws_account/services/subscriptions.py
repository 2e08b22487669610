"""Subscription filters of log groups: only stored, the code that runs functions reads them."""

from sim.aws_account.function_runtime import AccountServices
from sim.aws_http.protocol import ApiDict, ApiError, ApiHandlers, ApiResponse


class SubscriptionFilterApi:
    """The subscription filters of the account, by log group and name."""

    def __init__(self, account: AccountServices) -> None:
        """Start without subscription filters."""
        self._account = account
        self._filters: dict[tuple[str, str], ApiResponse] = {}
        self.handlers: ApiHandlers = {
            "DeleteSubscriptionFilter": self._delete,
            "DescribeSubscriptionFilters": self._describe,
            "PutSubscriptionFilter": self._put,
        }

    def _put(self, request: ApiDict) -> ApiResponse:
        group = request["logGroupName"]
        log_groups = self._account.get_client("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        if group not in [log_group["logGroupName"] for log_group in log_groups]:
            raise ApiError("ResourceNotFoundException", "The specified log group does not exist.")
        creation_time = round(self._account.clock.get_time().timestamp() * 1000)
        self._filters[group, request["filterName"]] = {**request, "creationTime": creation_time}
        return {}

    def _describe(self, request: ApiDict) -> ApiResponse:
        filters = [
            subscription_filter
            for (group, _), subscription_filter in sorted(self._filters.items())
            if group == request["logGroupName"]
        ]
        return {"subscriptionFilters": filters}

    def _delete(self, request: ApiDict) -> ApiResponse:
        key = request["logGroupName"], request["filterName"]
        if key not in self._filters:
            raise ApiError("ResourceNotFoundException", "The specified subscription filter does not exist.")
        del self._filters[key]
        return {}
