"""The resource types that can be deployed."""

from collections.abc import Callable, Mapping
from typing import Final

from sim.aws_account.resource_types import (
    alarms_rules_topics,
    alias_deployments,
    iam_and_access_entries,
    lambda_functions,
    logs,
    networks,
    queues,
    storage,
)
from sim.aws_account.resource_types.custom_resource import CustomResourceProvider
from sim.aws_account.resource_types.resource_provider import Failed, ResourceProvider

RESOURCE_PROVIDERS: Final[Mapping[str, ResourceProvider]] = {
    "AWS::CDK::Metadata": ResourceProvider(),
    "AWS::CloudWatch::Alarm": alarms_rules_topics.AlarmProvider(),
    "AWS::CloudWatch::Dashboard": alarms_rules_topics.DashboardProvider(),
    "AWS::CodeDeploy::Application": alias_deployments.ApplicationProvider(),
    "AWS::CodeDeploy::DeploymentConfig": alias_deployments.DeploymentConfigProvider(),
    "AWS::CodeDeploy::DeploymentGroup": alias_deployments.DeploymentGroupProvider(),
    "AWS::DynamoDB::Table": storage.TableProvider(),
    "AWS::EC2::SecurityGroup": networks.SecurityGroupProvider(),
    "AWS::EC2::SecurityGroupEgress": networks.SecurityGroupRuleProvider(),
    "AWS::EC2::SecurityGroupIngress": networks.SecurityGroupRuleProvider(),
    "AWS::EC2::VPCEndpoint": networks.VpcEndpointProvider(),
    "AWS::ECR::Repository": storage.RepositoryProvider(),
    "AWS::EKS::AccessEntry": iam_and_access_entries.AccessEntryProvider(),
    "AWS::Events::Rule": alarms_rules_topics.RuleProvider(),
    "AWS::IAM::InstanceProfile": iam_and_access_entries.InstanceProfileProvider(),
    "AWS::IAM::ManagedPolicy": iam_and_access_entries.ManagedPolicyProvider(),
    "AWS::IAM::Policy": iam_and_access_entries.PolicyProvider(),
    "AWS::IAM::Role": iam_and_access_entries.RoleProvider(),
    "AWS::KMS::Alias": storage.KeyAliasProvider(),
    "AWS::KMS::Key": storage.KeyProvider(),
    "AWS::Lambda::EventInvokeConfig": lambda_functions.EventInvokeConfigProvider(),
    "AWS::Lambda::EventSourceMapping": lambda_functions.EventSourceMappingProvider(),
    "AWS::Lambda::Function": lambda_functions.FunctionProvider(),
    "AWS::Lambda::LayerVersion": lambda_functions.LayerVersionProvider(),
    "AWS::Lambda::Permission": lambda_functions.PermissionProvider(),
    "AWS::Lambda::Version": lambda_functions.VersionProvider(),
    "AWS::Logs::LogGroup": logs.LogGroupProvider(),
    "AWS::Logs::SubscriptionFilter": logs.SubscriptionFilterProvider(),
    "AWS::S3::Bucket": storage.BucketProvider(),
    "AWS::S3::BucketPolicy": storage.BucketPolicyProvider(),
    "AWS::SNS::Subscription": alarms_rules_topics.SubscriptionProvider(),
    "AWS::SNS::Topic": alarms_rules_topics.TopicProvider(),
    "AWS::SNS::TopicPolicy": alarms_rules_topics.TopicPolicyProvider(),
    "AWS::SQS::Queue": queues.QueueProvider(),
    "AWS::SQS::QueuePolicy": queues.QueuePolicyProvider(),
    "AWS::SSM::Parameter": storage.ParameterProvider(),
    "AWS::Scheduler::Schedule": alarms_rules_topics.ScheduleProvider(),
    "AWS::Scheduler::ScheduleGroup": alarms_rules_topics.ScheduleGroupProvider(),
}


def build_provider_lookup(
    custom: CustomResourceProvider, alias: alias_deployments.AliasProvider
) -> Callable[[str], ResourceProvider]:
    """Return the function that finds the provider of a resource type; it raises `Failed` for an unsupported type."""
    provider_by_type = {
        **RESOURCE_PROVIDERS,
        "AWS::CloudFormation::CustomResource": custom,
        "AWS::Lambda::Alias": alias,
    }

    def find_provider(resource_type: str) -> ResourceProvider:
        if resource_type.startswith("Custom::"):
            return custom
        if resource_type not in provider_by_type:
            raise Failed(f"Template format error: Unrecognized resource types: [{resource_type}]")
        return provider_by_type[resource_type]

    return find_provider
