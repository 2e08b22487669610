"""What watches and wakes: alarms, dashboards, rules, schedules, topics."""

import json
from typing import Any

from sim.account.kinds.kind import Kind, Made, Place, Said, Setting, only, without


class Alarm(Setting):
    """AWS::CloudWatch::Alarm."""

    fixed = frozenset({"AlarmName"})

    def write(self, at: Place, said: Said, before: Made | None) -> Made:
        """Write it."""
        name = before.physical_id if before else said.get("AlarmName") or at.named(255)
        at.client("cloudwatch").put_metric_alarm(AlarmName=name, **_typed(without(said, "AlarmName")))
        return Made(physical_id=name, attributes={"Arn": at.arn("cloudwatch", f"alarm:{name}")})

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away."""
        del said
        at.client("cloudwatch").delete_alarms(AlarmNames=[made.physical_id])


def _typed(said: Said) -> dict[str, Any]:
    return {
        key: float(value)
        if key == "Threshold"
        else int(value)
        if key.endswith(("Periods", "Period", "ToAlarm"))
        else value
        for key, value in said.items()
    }


class Dashboard(Setting):
    """AWS::CloudWatch::Dashboard."""

    fixed = frozenset({"DashboardName"})

    def write(self, at: Place, said: Said, before: Made | None) -> Made:
        """Write it."""
        name = before.physical_id if before else said.get("DashboardName") or at.named(255)
        at.client("cloudwatch").put_dashboard(DashboardName=name, DashboardBody=said["DashboardBody"])
        return Made(physical_id=name)

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away."""
        del said
        at.client("cloudwatch").delete_dashboards(DashboardNames=[made.physical_id])


class Rule(Kind):
    """AWS::Events::Rule."""

    fixed = frozenset({"EventBusName", "Name"})

    def create(self, at: Place, said: Said) -> Made:
        """Make it with its targets."""
        name = said.get("Name") or at.named()
        at.begun.append(Made(physical_id=name))
        arn = self._write(at, name, said)
        return Made(physical_id=name, attributes={"Arn": arn})

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Change it and its targets."""
        self._write(at, made.physical_id, new)
        kept = {one["Id"] for one in new.get("Targets", ())}
        self._forget(at, made, old, [one["Id"] for one in old.get("Targets", ()) if one["Id"] not in kept])
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away with its targets."""
        self._forget(at, made, said, [one["Id"] for one in said.get("Targets", ())])
        at.client("events").delete_rule(Name=made.physical_id, **only(said, "EventBusName"))

    def _write(self, at: Place, name: str, said: Said) -> str:
        events, bus = at.client("events"), only(said, "EventBusName")
        rest = only(said, "Description", "RoleArn", "ScheduleExpression", "State")
        pattern = {"EventPattern": json.dumps(said["EventPattern"])} if "EventPattern" in said else {}
        arn = events.put_rule(Name=name, **rest, **pattern, **bus)["RuleArn"]
        if said.get("Targets"):
            events.put_targets(Rule=name, Targets=said["Targets"], **bus)
        return str(arn)

    def _forget(self, at: Place, made: Made, said: Said, ids: list[str]) -> None:
        if ids:
            at.client("events").remove_targets(Rule=made.physical_id, Ids=ids, **only(said, "EventBusName"))


class ScheduleGroup(Kind):
    """AWS::Scheduler::ScheduleGroup."""

    all_fixed = True

    def create(self, at: Place, said: Said) -> Made:
        """Make it."""
        name = said.get("Name") or at.named()
        arn = at.client("scheduler").create_schedule_group(Name=name, **only(said, "Tags"))["ScheduleGroupArn"]
        return Made(physical_id=name, attributes={"Arn": arn, "State": "ACTIVE"})

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away with all its schedules."""
        del said
        at.client("scheduler").delete_schedule_group(Name=made.physical_id)


class Schedule(Kind):
    """AWS::Scheduler::Schedule."""

    fixed = frozenset({"GroupName", "Name"})

    def create(self, at: Place, said: Said) -> Made:
        """Make it."""
        name = said.get("Name") or at.named()
        made = at.client("scheduler").create_schedule(Name=name, **without(said, "Name"))
        return Made(physical_id=name, attributes={"Arn": made["ScheduleArn"]})

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Change all of it."""
        del old
        at.client("scheduler").update_schedule(Name=made.physical_id, **without(new, "Name"))
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away."""
        at.client("scheduler").delete_schedule(Name=made.physical_id, **only(said, "GroupName"))


class Topic(Kind):
    """AWS::SNS::Topic."""

    fixed = frozenset({"FifoTopic", "TopicName"})

    def create(self, at: Place, said: Said) -> Made:
        """Make it with its subscriptions."""
        name = said.get("TopicName") or at.named(256)
        attributes = {key: str(said[key]) for key in ("DisplayName", "KmsMasterKeyId") if key in said}
        arn = at.client("sns").create_topic(Name=name, Attributes=attributes)["TopicArn"]
        at.begun.append(Made(physical_id=arn))
        for one in said.get("Subscription", ()):
            at.client("sns").subscribe(TopicArn=arn, Protocol=one["Protocol"], Endpoint=one["Endpoint"])
        return Made(physical_id=arn, attributes={"TopicArn": arn, "TopicName": name})

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Change its attributes."""
        for key in ("DisplayName", "KmsMasterKeyId"):
            if old.get(key) != new.get(key):
                value = str(new.get(key, ""))
                at.client("sns").set_topic_attributes(
                    TopicArn=made.physical_id, AttributeName=key, AttributeValue=value
                )
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away with its subscriptions."""
        del said
        sns = at.client("sns")
        for one in sns.list_subscriptions_by_topic(TopicArn=made.physical_id)["Subscriptions"]:
            sns.unsubscribe(SubscriptionArn=one["SubscriptionArn"])
        sns.delete_topic(TopicArn=made.physical_id)


class Subscription(Kind):
    """AWS::SNS::Subscription."""

    all_fixed = True

    def create(self, at: Place, said: Said) -> Made:
        """Subscribe."""
        attributes = {
            key: json.dumps(said[key]) if isinstance(said[key], dict) else str(said[key]).lower()
            for key in ("FilterPolicy", "RawMessageDelivery", "RedrivePolicy")
            if key in said
        }
        arn = at.client("sns").subscribe(
            TopicArn=said["TopicArn"], Protocol=said["Protocol"], Endpoint=said["Endpoint"], Attributes=attributes
        )["SubscriptionArn"]
        return Made(physical_id=arn)

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Unsubscribe."""
        del said
        at.client("sns").unsubscribe(SubscriptionArn=made.physical_id)


class TopicPolicy(Setting):
    """AWS::SNS::TopicPolicy."""

    def write(self, at: Place, said: Said, before: Made | None) -> Made:
        """Write the document to each topic."""
        for arn in said["Topics"]:
            document = json.dumps(said["PolicyDocument"])
            at.client("sns").set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=document)
        return before or Made(physical_id=at.named())
