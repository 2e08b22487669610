"""How a new version takes over from the one before: half of the calls for some minutes, then all, or none.

All functions ship the same code, so that a version which cannot even begin shows in whichever is called first. That is
why one alarm, over the errors of new versions that tick often, stops all. It does not look at the version before: who
is broken already may still be mended by the next deployment.
"""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.access import Grant
from infra.functions import LIVE, Functions
from infra.knobs import Knobs

TRIED_FOR: Final = cdk.Duration.minutes(5)
SHARE: Final = 50
"""Percent of the calls. A tick is a call a minute: of a tenth of them five minutes would as likely see none."""
MINUTE: Final = cdk.Duration.minutes(1)
BAD_MINUTES: Final = 2
"""With errors, of the minutes that a version is tried for: one may be the API server's."""
NUMBERED: Final = "versions of these functions, whose numbers nobody knows beforehand"
LOOKED_AT: Final = "CodeDeploy asks for several alarms at once, and only looks"


class Deployments(Construct):
    """A deployment group for each working function; CloudFormation asks it to move the alias."""

    def __init__(self, scope: Construct, construct_id: str, *, knobs: Knobs, functions: Functions) -> None:
        """Make them, and the alarm that takes a deployment back."""
        super().__init__(scope, construct_id)
        self._functions, self._cluster = functions, knobs.cluster
        self._application = codedeploy.LambdaApplication(self, "Application")
        self.errors = self._errors()
        role = self._role()
        config = self._config(knobs.deployment)
        for spec in functions.specs:
            group = codedeploy.LambdaDeploymentGroup(
                self,
                spec.name.capitalize(),
                application=self._application,
                alias=functions.alias(spec.name),
                deployment_config=config,
                role=role.without_policy_updates(),
                alarms=[self.errors],
                auto_rollback=codedeploy.AutoRollbackConfig(
                    deployment_in_alarm=True, failed_deployment=True, stopped_deployment=True
                ),
            )
            # Rights first: a group whose role may not look at its alarms fails its deployment.
            group.node.add_dependency(role)

    def _config(self, chosen: str) -> codedeploy.ILambdaDeploymentConfig:
        if chosen == "all-at-once":
            return codedeploy.LambdaDeploymentConfig.ALL_AT_ONCE
        routing = codedeploy.TrafficRouting.time_based_canary(interval=TRIED_FOR, percentage=SHARE)
        return codedeploy.LambdaDeploymentConfig(self, "Canary", traffic_routing=routing)

    def _errors(self) -> cloudwatch.Alarm:
        # Who is called more rarely could not fail in so many minutes, and each metric costs $0.10 a month.
        ticking = [spec for spec in self._functions.specs if spec.every_minutes]
        often = [spec for spec in ticking if BAD_MINUTES * spec.every_minutes <= TRIED_FOR.to_minutes()]
        using = {spec.name: self._errors_of(spec.name) for spec in often or ticking}
        return cloudwatch.Alarm(
            self,
            "NewVersionErrors",
            metric=cloudwatch.MathExpression(expression="SUM(METRICS())", using_metrics=using, period=MINUTE),
            alarm_description=f"Joiner, {self._cluster}: a new version fails and is taken back: its log says at what.",
            threshold=1,
            evaluation_periods=round(TRIED_FOR.to_minutes()),
            datapoints_to_alarm=BAD_MINUTES,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )

    def _errors_of(self, name: str) -> cloudwatch.Metric:
        function = self._functions[name]
        return cloudwatch.Metric(
            namespace="AWS/Lambda",
            metric_name="Errors",
            dimensions_map={
                "FunctionName": function.function_name,
                "Resource": f"{function.function_name}:{LIVE}",
                "ExecutedVersion": function.current_version.version,
            },
            statistic="Sum",
            period=MINUTE,
        )

    def _role(self) -> iam.Role:
        """Answer the role of all groups: it moves aliases of these functions, for groups of this application."""
        partition, region, account = cdk.Aws.PARTITION, cdk.Aws.REGION, cdk.Aws.ACCOUNT_ID
        groups = f"arn:{partition}:codedeploy:{region}:{account}:deploymentgroup:{self._application.application_name}/*"
        deputy = {"StringEquals": {"aws:SourceAccount": account}, "ArnLike": {"aws:SourceArn": groups}}
        trusted = iam.ServicePrincipal("codedeploy.amazonaws.com", conditions=deputy)
        says = f"Joiner, {self._cluster}: moves the aliases of its functions to new versions, and back"
        role = iam.Role(self, "Role", assumed_by=trusted, description=says)
        arns = tuple(self._functions[spec.name].function_arn for spec in self._functions.specs)
        versions = tuple(f"{arn}:*" for arn in arns)
        move, asked = ("lambda:GetAlias", "lambda:UpdateAlias"), ("lambda:GetProvisionedConcurrencyConfig",)
        for grant in (
            Grant(sid="MoveAliases", actions=move, resources=arns),
            Grant(sid="AskVersions", actions=asked, resources=versions, because=NUMBERED),
            Grant(sid="AskAlarms", actions=("cloudwatch:DescribeAlarms",), resources=("*",), because=LOOKED_AT),
        ):
            grant.to(role)
        return role
