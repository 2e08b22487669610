"""Which resources of a template the embedded world knows, so that none is passed over in silence."""

from typing import Final

INERT: Final = frozenset(
    {
        "AWS::CDK::Metadata",
        "AWS::CloudWatch::Alarm",
        "AWS::CloudWatch::Dashboard",
        "AWS::CodeDeploy::Application",
        "AWS::CodeDeploy::DeploymentConfig",
        "AWS::CodeDeploy::DeploymentGroup",
        "AWS::DynamoDB::Table",
        "AWS::EKS::AccessEntry",
        "AWS::IAM::InstanceProfile",
        "AWS::IAM::Policy",
        "AWS::IAM::Role",
        "AWS::Lambda::LayerVersion",
        "AWS::Lambda::Permission",
        "AWS::Lambda::Version",
        "AWS::Logs::LogGroup",
        "AWS::S3::Bucket",
        "AWS::S3::BucketPolicy",
        "AWS::SQS::QueuePolicy",
        "AWS::Scheduler::ScheduleGroup",
        "Custom::JoinerEmptied",
        "Custom::JoinerInstalled",
    }
)
"""Resources that wake nobody."""
WIRED: Final = {
    "AWS::Events::Rule": frozenset({"Description", "EventPattern", "Name", "State", "Tags", "Targets"}),
    "AWS::Lambda::Alias": frozenset({"Description", "FunctionName", "FunctionVersion", "Name"}),
    "AWS::Lambda::EventInvokeConfig": frozenset(
        {"FunctionName", "MaximumEventAgeInSeconds", "MaximumRetryAttempts", "Qualifier"}
    ),
    "AWS::Lambda::EventSourceMapping": frozenset(
        {
            "BatchSize",
            "Enabled",
            "EventSourceArn",
            "FunctionName",
            "FunctionResponseTypes",
            "MaximumBatchingWindowInSeconds",
            "ScalingConfig",
            "Tags",
        }
    ),
    "AWS::Lambda::Function": frozenset(
        {
            "Architectures",
            "Code",
            "Description",
            "Environment",
            "FunctionName",
            "Handler",
            "Layers",
            "LoggingConfig",
            "MemorySize",
            "RecursiveLoop",
            "ReservedConcurrentExecutions",
            "Role",
            "Runtime",
            "Tags",
            "Timeout",
            "VpcConfig",
        }
    ),
    "AWS::Scheduler::Schedule": frozenset(
        {
            "Description",
            "FlexibleTimeWindow",
            "GroupName",
            "Name",
            "ScheduleExpression",
            "ScheduleExpressionTimezone",
            "State",
            "Target",
        }
    ),
    "AWS::Logs::SubscriptionFilter": frozenset({"DestinationArn", "FilterPattern", "LogGroupName"}),
    "AWS::SQS::Queue": frozenset(
        {
            "DelaySeconds",
            "KmsMasterKeyId",
            "MessageRetentionPeriod",
            "QueueName",
            "RedrivePolicy",
            "SqsManagedSseEnabled",
            "Tags",
            "VisibilityTimeout",
        }
    ),
}
"""Resources that wake somebody, with the properties that are simulated or do not matter."""
