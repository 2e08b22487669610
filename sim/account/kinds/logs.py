"""CloudWatch Logs: groups, and who is told of their lines."""

from sim.account.kinds.kind import Kind, Made, Place, Said, Setting


class LogGroup(Kind):
    """AWS::Logs::LogGroup."""

    fixed = frozenset({"LogGroupName"})

    def create(self, at: Place, said: Said) -> Made:
        """Make it, then say the rest."""
        name = said.get("LogGroupName") or at.named(512)
        at.client("logs").create_log_group(logGroupName=name)
        at.begun.append(Made(physical_id=name))
        self._write(at, name, said)
        return Made(physical_id=name, attributes={"Arn": f"{at.arn('logs', f'log-group:{name}')}:*"})

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Say it anew."""
        if "RetentionInDays" in old and "RetentionInDays" not in new:
            at.client("logs").delete_retention_policy(logGroupName=made.physical_id)
        self._write(at, made.physical_id, new)
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away with all lines."""
        del said
        at.client("logs").delete_log_group(logGroupName=made.physical_id)

    def _write(self, at: Place, name: str, said: Said) -> None:
        if "RetentionInDays" in said:
            days = int(said["RetentionInDays"])
            at.client("logs").put_retention_policy(logGroupName=name, retentionInDays=days)


class SubscriptionFilter(Setting):
    """AWS::Logs::SubscriptionFilter."""

    fixed = frozenset({"FilterName", "LogGroupName"})

    def write(self, at: Place, said: Said, before: Made | None) -> Made:
        """Write it."""
        name = before.physical_id if before else said.get("FilterName") or at.named()
        fields = ("LogGroupName", "FilterPattern", "DestinationArn", "RoleArn", "Distribution")
        rest = {f"{key[0].lower()}{key[1:]}": said[key] for key in fields if key in said}
        at.client("logs").put_subscription_filter(filterName=name, **rest)
        return Made(physical_id=name)

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away."""
        at.client("logs").delete_subscription_filter(logGroupName=said["LogGroupName"], filterName=made.physical_id)
