"""The resources in an account: everything that any service lists."""

from sim.aws_account.account import Account

LIST_CALLS: tuple[tuple[str, str, str, str], ...] = (
    ("cloudformation", "describe_stacks", "Stacks", "StackName"),
    ("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    ("cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"),
    ("codedeploy", "list_applications", "applications", ""),
    ("codedeploy", "list_deployment_configs", "deploymentConfigsList", ""),
    ("dynamodb", "list_tables", "TableNames", ""),
    ("ec2", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    ("ec2", "describe_security_group_rules", "SecurityGroupRules", "SecurityGroupRuleId"),
    ("ecr", "describe_repositories", "repositories", "repositoryName"),
    ("events", "list_rules", "Rules", "Name"),
    ("iam", "list_instance_profiles", "InstanceProfiles", "InstanceProfileName"),
    ("iam", "list_roles", "Roles", "RoleName"),
    ("kms", "list_aliases", "Aliases", "AliasName"),
    ("lambda", "list_event_source_mappings", "EventSourceMappings", "UUID"),
    ("lambda", "list_functions", "Functions", "FunctionName"),
    ("lambda", "list_layers", "Layers", "LayerName"),
    ("logs", "describe_log_groups", "logGroups", "logGroupName"),
    ("s3", "list_buckets", "Buckets", "Name"),
    ("scheduler", "list_schedule_groups", "ScheduleGroups", "Name"),
    ("scheduler", "list_schedules", "Schedules", "Name"),
    ("sns", "list_subscriptions", "Subscriptions", "SubscriptionArn"),
    ("sns", "list_topics", "Topics", "TopicArn"),
    ("sqs", "list_queues", "QueueUrls", ""),
)
DEFAULT_RESOURCES = frozenset({"scheduler default"})
"""Resources that every account has."""


def list_account_resources(account: Account) -> list[str]:
    """Return the service and name of each resource, sorted; KMS keys and AWS-managed IAM policies are not counted."""
    resources = {
        f"eks {entry}" for entry in account.get_client("eks").list_access_entries(clusterName="demo")["accessEntries"]
    }
    policies = account.get_client("iam").list_policies(Scope="Local")["Policies"]
    resources |= {
        f"iam {policy['PolicyName']}" for policy in policies if not policy["Arn"].startswith("arn:aws:iam::aws:")
    }
    for service, call, key, name in LIST_CALLS:
        for item in getattr(account.get_client(service), call)().get(key, ()):
            resources.add(f"{service} {item[name] if name else item}")
    return sorted(resource for resource in resources - DEFAULT_RESOURCES if "alias/aws/" not in resource)
