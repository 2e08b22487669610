"""The types that can be deployed."""

from collections.abc import Callable, Mapping
from typing import Final

from sim.account.kinds import aliases, functions, identity, logs, networks, queues, storage, watching
from sim.account.kinds.custom import Custom
from sim.account.kinds.kind import Failed, Kind

KINDS: Final[Mapping[str, Kind]] = {
    "AWS::CDK::Metadata": Kind(),
    "AWS::CloudWatch::Alarm": watching.Alarm(),
    "AWS::CloudWatch::Dashboard": watching.Dashboard(),
    "AWS::CodeDeploy::Application": aliases.Application(),
    "AWS::CodeDeploy::DeploymentConfig": aliases.DeploymentConfig(),
    "AWS::CodeDeploy::DeploymentGroup": aliases.DeploymentGroup(),
    "AWS::DynamoDB::Table": storage.Table(),
    "AWS::EC2::SecurityGroup": networks.SecurityGroup(),
    "AWS::EC2::SecurityGroupEgress": networks.SecurityGroupRule(),
    "AWS::EC2::SecurityGroupIngress": networks.SecurityGroupRule(),
    "AWS::EC2::VPCEndpoint": networks.VpcEndpoint(),
    "AWS::ECR::Repository": storage.Repository(),
    "AWS::EKS::AccessEntry": identity.AccessEntry(),
    "AWS::Events::Rule": watching.Rule(),
    "AWS::IAM::InstanceProfile": identity.InstanceProfile(),
    "AWS::IAM::ManagedPolicy": identity.ManagedPolicy(),
    "AWS::IAM::Policy": identity.Policy(),
    "AWS::IAM::Role": identity.Role(),
    "AWS::KMS::Alias": storage.KeyAlias(),
    "AWS::KMS::Key": storage.Key(),
    "AWS::Lambda::EventInvokeConfig": functions.EventInvokeConfig(),
    "AWS::Lambda::EventSourceMapping": functions.EventSourceMapping(),
    "AWS::Lambda::Function": functions.Function(),
    "AWS::Lambda::LayerVersion": functions.Layer(),
    "AWS::Lambda::Permission": functions.Permission(),
    "AWS::Lambda::Version": functions.Version(),
    "AWS::Logs::LogGroup": logs.LogGroup(),
    "AWS::Logs::SubscriptionFilter": logs.SubscriptionFilter(),
    "AWS::S3::Bucket": storage.Bucket(),
    "AWS::S3::BucketPolicy": storage.BucketPolicy(),
    "AWS::SNS::Subscription": watching.Subscription(),
    "AWS::SNS::Topic": watching.Topic(),
    "AWS::SNS::TopicPolicy": watching.TopicPolicy(),
    "AWS::SQS::Queue": queues.Queue(),
    "AWS::SQS::QueuePolicy": queues.QueuePolicy(),
    "AWS::SSM::Parameter": storage.Parameter(),
    "AWS::Scheduler::Schedule": watching.Schedule(),
    "AWS::Scheduler::ScheduleGroup": watching.ScheduleGroup(),
}


def finder(custom: Custom, alias: aliases.Alias) -> Callable[[str], Kind]:
    """Answer the function that finds a type; it raises `Failed` for one that cannot be deployed here."""
    every = {**KINDS, "AWS::CloudFormation::CustomResource": custom, "AWS::Lambda::Alias": alias}

    def find(name: str) -> Kind:
        if name.startswith("Custom::"):
            return custom
        if name not in every:
            raise Failed(f"Template format error: Unrecognized resource types: [{name}]")
        return every[name]

    return find
