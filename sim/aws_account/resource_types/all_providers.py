"""The resource types that can be deployed."""

from collections.abc import Callable, Mapping
from typing import Final

from sim.aws_account.resource_types import aliases, cloudwatch, functions, identity, logs, networks, queues, storage
from sim.aws_account.resource_types.custom_resource import CustomResourceProvider
from sim.aws_account.resource_types.resource_provider import Failed, ResourceProvider

RESOURCE_PROVIDERS: Final[Mapping[str, ResourceProvider]] = {
    "AWS::CDK::Metadata": ResourceProvider(),
    "AWS::CloudWatch::Alarm": cloudwatch.AlarmProvider(),
    "AWS::CloudWatch::Dashboard": cloudwatch.DashboardProvider(),
    "AWS::CodeDeploy::Application": aliases.ApplicationProvider(),
    "AWS::CodeDeploy::DeploymentConfig": aliases.DeploymentConfigProvider(),
    "AWS::CodeDeploy::DeploymentGroup": aliases.DeploymentGroupProvider(),
    "AWS::DynamoDB::Table": storage.TableProvider(),
    "AWS::EC2::SecurityGroup": networks.SecurityGroupProvider(),
    "AWS::EC2::SecurityGroupEgress": networks.SecurityGroupRuleProvider(),
    "AWS::EC2::SecurityGroupIngress": networks.SecurityGroupRuleProvider(),
    "AWS::EC2::VPCEndpoint": networks.VpcEndpointProvider(),
    "AWS::ECR::Repository": storage.RepositoryProvider(),
    "AWS::EKS::AccessEntry": identity.AccessEntryProvider(),
    "AWS::Events::Rule": cloudwatch.RuleProvider(),
    "AWS::IAM::InstanceProfile": identity.InstanceProfileProvider(),
    "AWS::IAM::ManagedPolicy": identity.ManagedPolicyProvider(),
    "AWS::IAM::Policy": identity.PolicyProvider(),
    "AWS::IAM::Role": identity.RoleProvider(),
    "AWS::KMS::Alias": storage.KeyAliasProvider(),
    "AWS::KMS::Key": storage.KeyProvider(),
    "AWS::Lambda::EventInvokeConfig": functions.EventInvokeConfigProvider(),
    "AWS::Lambda::EventSourceMapping": functions.EventSourceMappingProvider(),
    "AWS::Lambda::Function": functions.FunctionProvider(),
    "AWS::Lambda::LayerVersion": functions.LayerVersionProvider(),
    "AWS::Lambda::Permission": functions.PermissionProvider(),
    "AWS::Lambda::Version": functions.VersionProvider(),
    "AWS::Logs::LogGroup": logs.LogGroupProvider(),
    "AWS::Logs::SubscriptionFilter": logs.SubscriptionFilterProvider(),
    "AWS::S3::Bucket": storage.BucketProvider(),
    "AWS::S3::BucketPolicy": storage.BucketPolicyProvider(),
    "AWS::SNS::Subscription": cloudwatch.SubscriptionProvider(),
    "AWS::SNS::Topic": cloudwatch.TopicProvider(),
    "AWS::SNS::TopicPolicy": cloudwatch.TopicPolicyProvider(),
    "AWS::SQS::Queue": queues.QueueProvider(),
    "AWS::SQS::QueuePolicy": queues.QueuePolicyProvider(),
    "AWS::SSM::Parameter": storage.ParameterProvider(),
    "AWS::Scheduler::Schedule": cloudwatch.ScheduleProvider(),
    "AWS::Scheduler::ScheduleGroup": cloudwatch.ScheduleGroupProvider(),
}


def build_provider_lookup(
    custom: CustomResourceProvider, alias: aliases.AliasProvider
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
