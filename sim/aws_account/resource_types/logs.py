"""CloudWatch Logs: log groups and subscription filters."""

from sim.aws_account.resource_types.resource_provider import (
    ConfiguredResourceProvider,
    PhysicalResource,
    PutResourceProvider,
    ResourceRequest,
    build_resource,
    convert_to_camel_case,
    select_keys,
)


class LogGroupProvider(ConfiguredResourceProvider):
    """AWS::Logs::LogGroup."""

    create_only_properties = frozenset({"LogGroupName"})
    delete_call = ("logs", "delete_log_group", "logGroupName")

    def create_unconfigured(self, request: ResourceRequest) -> PhysicalResource:
        """Create the log group."""
        name = request.choose_name("LogGroupName", 512)
        request.get_client("logs").create_log_group(logGroupName=name)
        return build_resource(name, Arn=f"{request.build_arn('logs', f'log-group:{name}')}:*")

    def configure(self, request: ResourceRequest, physical_id: str) -> None:
        """Set the retention."""
        logs = request.get_client("logs")
        if "RetentionInDays" in request.removed_properties:
            logs.delete_retention_policy(logGroupName=physical_id)
        if "RetentionInDays" in request.properties:
            days = int(request.properties["RetentionInDays"])
            logs.put_retention_policy(logGroupName=physical_id, retentionInDays=days)


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
