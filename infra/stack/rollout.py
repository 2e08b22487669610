"""Rollout of a new version: half of the invocations for some minutes, then all or none.

All functions ship the same code, so a version that cannot start fails in the function that is invoked first. One alarm
on the errors of new versions of frequently scheduled functions therefore stops all deployments. It ignores the previous
version: a deployment must be able to repair a version that is already broken.
"""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.functions.functions import LIVE_ALIAS, Functions
from infra.iam.policy_statement import Grant
from infra.settings.settings import StackOptions

CANARY_DURATION: Final = cdk.Duration.minutes(5)
CANARY_PERCENT: Final = 50
"""Percent of the invocations.

A scheduled function is invoked once a minute: a share of 10 % could see no invocation in five minutes.
"""
ALARM_PERIOD: Final = cdk.Duration.minutes(1)
BAD_MINUTES_TO_ALARM: Final = 2
"""Minutes with errors during the canary phase; a single one may be caused by the API server."""
VERSIONS_REASON: Final = "versions of these functions; their numbers are not known at deployment"
ALARMS_REASON: Final = "CodeDeploy describes several alarms in one call, read-only"


class Deployments(Construct):
    """A deployment group for each function except the installer; CloudFormation uses it to move the alias."""

    def __init__(self, scope: Construct, construct_id: str, *, options: StackOptions, functions: Functions) -> None:
        """Create the deployment groups, and the alarm that rolls a deployment back."""
        super().__init__(scope, construct_id)
        self._functions, self._cluster = functions, options.cluster
        self._application = codedeploy.LambdaApplication(self, "Application")
        self.error_alarm = self._build_error_alarm()
        role = self._build_role()
        config = self._build_config(options.deployment)
        for spec in functions.specs:
            group = codedeploy.LambdaDeploymentGroup(
                self,
                spec.name.capitalize(),
                application=self._application,
                alias=functions.get_alias(spec.name),
                deployment_config=config,
                role=role.without_policy_updates(),
                alarms=[self.error_alarm],
                auto_rollback=codedeploy.AutoRollbackConfig(
                    deployment_in_alarm=True, failed_deployment=True, stopped_deployment=True
                ),
            )
            # The permissions come first: if the role of a group may not read its alarms, the deployment fails.
            group.node.add_dependency(role)

    def _build_config(self, rollout: str) -> codedeploy.ILambdaDeploymentConfig:
        if rollout == "all-at-once":
            return codedeploy.LambdaDeploymentConfig.ALL_AT_ONCE
        routing = codedeploy.TrafficRouting.time_based_canary(interval=CANARY_DURATION, percentage=CANARY_PERCENT)
        return codedeploy.LambdaDeploymentConfig(self, "Canary", traffic_routing=routing)

    def _build_error_alarm(self) -> cloudwatch.Alarm:
        # A function invoked less often could not fail in so few minutes, and each metric costs $0.10/month.
        scheduled_specs = [spec for spec in self._functions.specs if spec.every_minutes]
        frequent_specs = [
            spec
            for spec in scheduled_specs
            if BAD_MINUTES_TO_ALARM * spec.every_minutes <= CANARY_DURATION.to_minutes()
        ]
        metric_by_name = {spec.name: self._build_error_metric(spec.name) for spec in frequent_specs or scheduled_specs}
        return cloudwatch.Alarm(
            self,
            "NewVersionErrors",
            metric=cloudwatch.MathExpression(
                expression="SUM(METRICS())", using_metrics=metric_by_name, period=ALARM_PERIOD
            ),
            alarm_description=(
                f"Joiner, {self._cluster}: a new version fails and is rolled back. See the logs of the functions."
            ),
            threshold=1,
            evaluation_periods=round(CANARY_DURATION.to_minutes()),
            datapoints_to_alarm=BAD_MINUTES_TO_ALARM,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )

    def _build_error_metric(self, name: str) -> cloudwatch.Metric:
        function = self._functions[name]
        return cloudwatch.Metric(
            namespace="AWS/Lambda",
            metric_name="Errors",
            dimensions_map={
                "FunctionName": function.function_name,
                "Resource": f"{function.function_name}:{LIVE_ALIAS}",
                "ExecutedVersion": function.current_version.version,
            },
            statistic="Sum",
            period=ALARM_PERIOD,
        )

    def _build_role(self) -> iam.Role:
        """Build the role of all deployment groups.

        It can move the aliases of these functions, and only for deployment groups of this application.
        """
        partition, region, account = cdk.Aws.PARTITION, cdk.Aws.REGION, cdk.Aws.ACCOUNT_ID
        groups = f"arn:{partition}:codedeploy:{region}:{account}:deploymentgroup:{self._application.application_name}/*"
        source_conditions = {"StringEquals": {"aws:SourceAccount": account}, "ArnLike": {"aws:SourceArn": groups}}
        principal = iam.ServicePrincipal("codedeploy.amazonaws.com", conditions=source_conditions)
        description = (
            f"Joiner, {self._cluster}: moves the aliases of the functions to new versions, and rolls them back"
        )
        role = iam.Role(self, "Role", assumed_by=principal, description=description)
        arns = tuple(self._functions[spec.name].function_arn for spec in self._functions.specs)
        versions = tuple(f"{arn}:*" for arn in arns)
        move_actions, read_actions = (
            ("lambda:GetAlias", "lambda:UpdateAlias"),
            ("lambda:GetProvisionedConcurrencyConfig",),
        )
        for grant in (
            Grant(sid="UpdateAliases", actions=move_actions, resources=arns),
            Grant(sid="DescribeVersions", actions=read_actions, resources=versions, wildcard_reason=VERSIONS_REASON),
            Grant(
                sid="DescribeAlarms",
                actions=("cloudwatch:DescribeAlarms",),
                resources=("*",),
                wildcard_reason=ALARMS_REASON,
            ),
        ):
            grant.add_to_role(role)
        return role
