"""What lies in an account: everything that any service lists."""

from sim.account.account import Account

LISTS: tuple[tuple[str, str, str, str], ...] = (
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
ALWAYS = frozenset({"scheduler default"})
"""What every account has."""


def lying_in(account: Account) -> list[str]:
    """Answer the service and the name of each thing, sorted; keys of KMS and what IAM has of AWS's are not counted."""
    found = {f"eks {one}" for one in account.client("eks").list_access_entries(clusterName="demo")["accessEntries"]}
    policies = account.client("iam").list_policies(Scope="Local")["Policies"]
    found |= {f"iam {one['PolicyName']}" for one in policies if not one["Arn"].startswith("arn:aws:iam::aws:")}
    for service, call, key, name in LISTS:
        for one in getattr(account.client(service), call)().get(key, ()):
            found.add(f"{service} {one[name] if name else one}")
    return sorted(one for one in found - ALWAYS if "alias/aws/" not in one)
