"""The resource types and properties that the embedded world supports, so that no resource is ignored silently."""

from typing import Final

IGNORED_TYPES: Final = frozenset(
    (
        *("AWS::CDK::Metadata", "AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard", "AWS::CodeDeploy::Application"),
        *("AWS::CodeDeploy::DeploymentConfig", "AWS::CodeDeploy::DeploymentGroup", "AWS::DynamoDB::Table"),
        *("AWS::EKS::AccessEntry", "AWS::IAM::InstanceProfile", "AWS::IAM::Policy", "AWS::IAM::Role"),
        *("AWS::Lambda::LayerVersion", "AWS::Lambda::Permission", "AWS::Lambda::Version", "AWS::Logs::LogGroup"),
        *("AWS::S3::Bucket", "AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy", "AWS::Scheduler::ScheduleGroup"),
        *("Custom::JoinerEmptied", "Custom::JoinerInstalled"),
    )
)
"""Resource types that do not trigger functions."""
SUPPORTED_PROPERTIES: Final[dict[str, tuple[str, ...]]] = {
    "AWS::Events::Rule": ("Description", "EventPattern", "Name", "State", "Tags", "Targets"),
    "AWS::Lambda::Alias": ("Description", "FunctionName", "FunctionVersion", "Name"),
    "AWS::Lambda::EventInvokeConfig": ("FunctionName", "MaximumEventAgeInSeconds", "MaximumRetryAttempts", "Qualifier"),
    "AWS::Lambda::EventSourceMapping": (
        *("BatchSize", "Enabled", "EventSourceArn", "FunctionName", "FunctionResponseTypes"),
        *("MaximumBatchingWindowInSeconds", "ScalingConfig", "Tags"),
    ),
    "AWS::Lambda::Function": (
        *("Architectures", "Code", "Description", "Environment", "FunctionName", "Handler", "Layers", "LoggingConfig"),
        *("MemorySize", "RecursiveLoop", "ReservedConcurrentExecutions", "Role", "Runtime", "Tags", "Timeout"),
        *("TracingConfig", "VpcConfig"),
    ),
    "AWS::Scheduler::Schedule": (
        *("Description", "FlexibleTimeWindow", "GroupName", "Name", "ScheduleExpression"),
        *("ScheduleExpressionTimezone", "State", "Target"),
    ),
    "AWS::Logs::SubscriptionFilter": ("DestinationArn", "FilterPattern", "LogGroupName"),
    "AWS::SQS::Queue": (
        *("DelaySeconds", "KmsMasterKeyId", "MessageRetentionPeriod", "QueueName", "RedrivePolicy"),
        *("SqsManagedSseEnabled", "Tags", "VisibilityTimeout"),
    ),
}
"""Resource types that trigger functions, with the properties that are simulated or have no effect here."""
