"""CloudWatch Logs: log groups and subscription filters."""

from sim.aws_account.resource_types.resource_provider import (
    PhysicalResource,
    PutResourceProvider,
    ResourceProvider,
    ResourceRequest,
    build_resource,
    convert_to_camel_case,
    select_keys,
)


class LogGroupProvider(ResourceProvider):
    """AWS::Logs::LogGroup."""

    create_only_properties = frozenset({"LogGroupName"})
    delete_call = ("logs", "delete_log_group", "logGroupName")

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the log group, then set its retention."""
        name = request.choose_name("LogGroupName", 512)
        request.get_client("logs").create_log_group(logGroupName=name)
        log_group = request.record_partial(name, Arn=f"{request.build_arn('logs', f'log-group:{name}')}:*")
        self._write_retention(request, name)
        return log_group

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Update the retention."""
        if "RetentionInDays" in request.removed_properties:
            request.get_client("logs").delete_retention_policy(logGroupName=request.physical_id)
        self._write_retention(request, request.physical_id)
        return request.resource

    def _write_retention(self, request: ResourceRequest, name: str) -> None:
        if "RetentionInDays" in request.properties:
            days = int(request.properties["RetentionInDays"])
            request.get_client("logs").put_retention_policy(logGroupName=name, retentionInDays=days)


class SubscriptionFilterProvider(PutResourceProvider):
    """AWS::Logs::SubscriptionFilter."""

    create_only_properties = frozenset({"FilterName", "LogGroupName"})

    def write(self, request: ResourceRequest) -> PhysicalResource:
        """Write the subscription filter."""
        name = request.choose_name("FilterName")
        fields = ("LogGroupName", "FilterPattern", "DestinationArn", "RoleArn", "Distribution")
        settings = convert_to_camel_case(select_keys(request.properties, *fields))
        request.get_client("logs").put_subscription_filter(filterName=name, **settings)
        return build_resource(name)

    def delete(self, request: ResourceRequest) -> None:
        """Delete the subscription filter."""
        request.get_client("logs").delete_subscription_filter(
            logGroupName=request.properties["LogGroupName"], filterName=request.physical_id
        )
