"""CloudWatch alarms and dashboards, EventBridge rules and schedules, SNS topics."""

import json
from typing import Any

from sim.aws_account.resource_types.resource_provider import (
    PhysicalResource,
    Properties,
    PutResourceProvider,
    ResourceProvider,
    ResourceRequest,
    build_resource,
    remove_keys,
    select_keys,
)


class AlarmProvider(PutResourceProvider):
    """AWS::CloudWatch::Alarm."""

    create_only_properties = frozenset({"AlarmName"})
    delete_call = ("cloudwatch", "delete_alarms", "AlarmNames")

    def write(self, request: ResourceRequest) -> PhysicalResource:
        """Write the alarm."""
        name = request.choose_name("AlarmName", 255)
        settings = _convert_numbers(remove_keys(request.properties, "AlarmName"))
        request.get_client("cloudwatch").put_metric_alarm(AlarmName=name, **settings)
        return build_resource(name, Arn=request.build_arn("cloudwatch", f"alarm:{name}"))


def _convert_numbers(properties: Properties) -> dict[str, Any]:
    return {
        key: float(value)
        if key == "Threshold"
        else int(value)
        if key.endswith(("Periods", "Period", "ToAlarm"))
        else value
        for key, value in properties.items()
    }


class DashboardProvider(PutResourceProvider):
    """AWS::CloudWatch::Dashboard."""

    create_only_properties = frozenset({"DashboardName"})
    delete_call = ("cloudwatch", "delete_dashboards", "DashboardNames")

    def write(self, request: ResourceRequest) -> PhysicalResource:
        """Write the dashboard."""
        name, body = request.choose_name("DashboardName", 255), request.properties["DashboardBody"]
        request.get_client("cloudwatch").put_dashboard(DashboardName=name, DashboardBody=body)
        return build_resource(name)


class RuleProvider(PutResourceProvider):
    """AWS::Events::Rule."""

    create_only_properties = frozenset({"EventBusName", "Name"})

    def write(self, request: ResourceRequest) -> PhysicalResource:
        """Write the rule and its targets; targets that an update removes are deleted."""
        events, bus = request.get_client("events"), select_keys(request.properties, "EventBusName")
        name = request.choose_name("Name")
        if not request.physical_id:
            request.record_partial(name)
        settings = select_keys(request.properties, "Description", "RoleArn", "ScheduleExpression", "State")
        if "EventPattern" in request.properties:
            settings["EventPattern"] = json.dumps(request.properties["EventPattern"])
        arn = events.put_rule(Name=name, **settings, **bus)["RuleArn"]
        if targets := request.properties.get("Targets"):
            events.put_targets(Rule=name, Targets=targets, **bus)
        kept_ids = _list_target_ids(request.properties)
        removed_ids = [target_id for target_id in _list_target_ids(request.old_properties) if target_id not in kept_ids]
        self._remove_targets(request, removed_ids)
        return request.resource if request.physical_id else build_resource(name, Arn=str(arn))

    def delete(self, request: ResourceRequest) -> None:
        """Delete the rule with its targets."""
        self._remove_targets(request, _list_target_ids(request.properties))
        bus = select_keys(request.properties, "EventBusName")
        request.get_client("events").delete_rule(Name=request.physical_id, **bus)

    def _remove_targets(self, request: ResourceRequest, target_ids: list[str]) -> None:
        if target_ids:
            bus = select_keys(request.properties, "EventBusName")
            request.get_client("events").remove_targets(Rule=request.physical_id, Ids=target_ids, **bus)


def _list_target_ids(properties: Properties) -> list[str]:
    return [target["Id"] for target in properties.get("Targets", ())]


class ScheduleGroupProvider(ResourceProvider):
    """AWS::Scheduler::ScheduleGroup."""

    is_immutable = True
    delete_call = ("scheduler", "delete_schedule_group", "Name")

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the schedule group."""
        name, tags = request.choose_name("Name"), select_keys(request.properties, "Tags")
        group = request.get_client("scheduler").create_schedule_group(Name=name, **tags)
        return build_resource(name, Arn=group["ScheduleGroupArn"], State="ACTIVE")


class ScheduleProvider(ResourceProvider):
    """AWS::Scheduler::Schedule."""

    create_only_properties = frozenset({"GroupName", "Name"})

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the schedule."""
        name, settings = request.choose_name("Name"), remove_keys(request.properties, "Name")
        schedule = request.get_client("scheduler").create_schedule(Name=name, **settings)
        return build_resource(name, Arn=schedule["ScheduleArn"])

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Update all settings of the schedule."""
        settings = remove_keys(request.properties, "Name")
        request.get_client("scheduler").update_schedule(Name=request.physical_id, **settings)
        return request.resource

    def delete(self, request: ResourceRequest) -> None:
        """Delete the schedule."""
        group = select_keys(request.properties, "GroupName")
        request.get_client("scheduler").delete_schedule(Name=request.physical_id, **group)


class TopicProvider(ResourceProvider):
    """AWS::SNS::Topic."""

    create_only_properties = frozenset({"FifoTopic", "TopicName"})

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the topic with its subscriptions."""
        name, sns = request.choose_name("TopicName", 256), request.get_client("sns")
        settings = select_keys(request.properties, "DisplayName", "KmsMasterKeyId")
        attributes = {key: str(value) for key, value in settings.items()}
        arn = sns.create_topic(Name=name, Attributes=attributes)["TopicArn"]
        topic = request.record_partial(arn, TopicArn=arn, TopicName=name)
        for subscription in request.properties.get("Subscription", ()):
            sns.subscribe(TopicArn=arn, **select_keys(subscription, "Protocol", "Endpoint"))
        return topic

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Update the attributes."""
        for key in ("DisplayName", "KmsMasterKeyId"):
            if request.old_properties.get(key) != request.properties.get(key):
                value = str(request.properties.get(key, ""))
                request.get_client("sns").set_topic_attributes(
                    TopicArn=request.physical_id, AttributeName=key, AttributeValue=value
                )
        return request.resource

    def delete(self, request: ResourceRequest) -> None:
        """Delete the topic with its subscriptions."""
        sns = request.get_client("sns")
        for subscription in sns.list_subscriptions_by_topic(TopicArn=request.physical_id)["Subscriptions"]:
            sns.unsubscribe(SubscriptionArn=subscription["SubscriptionArn"])
        sns.delete_topic(TopicArn=request.physical_id)


class SubscriptionProvider(ResourceProvider):
    """AWS::SNS::Subscription."""

    is_immutable = True
    delete_call = ("sns", "unsubscribe", "SubscriptionArn")

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the subscription."""
        settings = select_keys(request.properties, "FilterPolicy", "RawMessageDelivery", "RedrivePolicy")
        attributes = {
            key: json.dumps(value) if isinstance(value, dict) else str(value).lower() for key, value in settings.items()
        }
        target = {key: request.properties[key] for key in ("TopicArn", "Protocol", "Endpoint")}
        subscription = request.get_client("sns").subscribe(**target, Attributes=attributes)
        return build_resource(subscription["SubscriptionArn"])


class TopicPolicyProvider(PutResourceProvider):
    """AWS::SNS::TopicPolicy."""

    def write(self, request: ResourceRequest) -> PhysicalResource:
        """Set the policy of each topic."""
        document = json.dumps(request.properties["PolicyDocument"])
        for arn in request.properties["Topics"]:
            request.get_client("sns").set_topic_attributes(
                TopicArn=arn, AttributeName="Policy", AttributeValue=document
            )
        return build_resource(request.physical_id or request.generate_name())
