"""What Joiner does without pods: it terminates an instance without a NodeClaim, and it is quiet while idle."""

from datetime import timedelta
from typing import Any, Final

from shared.model.core.labels import NODECLASS, NODEPOOL
from shared.model.ec2.instance import CLUSTER_TAG
from shared.report.journal.journal import JOURNAL_PREFIX, decode_entry
from sim.playground.kubectl import NODE_CLAIMS_PATH
from tests.e2e_aws.cleanup import list_instance_ids
from tests.e2e_aws.environment import PREFIX, Environment, wait_minutes
from tests.e2e_aws.results import Observation, StepFailed, compare
from tests.e2e_aws.steps.deployment import get_stack_outputs, list_alarms, list_physical_ids
from tests.e2e_aws.steps.fleet_requests import (
    build_fleet_call,
    create_template,
    find_network,
    list_error_codes,
    list_launched_ids,
    wait_until_visible,
)

ORPHAN_TIMEOUT: Final = timedelta(minutes=10)
DRAIN_TIMEOUT: Final = timedelta(minutes=15)


def collect_orphan(environment: Environment) -> Observation:
    """Launch an instance with Joiner's tags and without a NodeClaim; wait until Joiner terminates it.

    Raises:
        StepFailed: EC2 launched no instance.
    """
    ec2, network = environment.get_client("ec2"), find_network(environment)
    tags = {
        CLUSTER_TAG: environment.cluster,
        f"kubernetes.io/cluster/{environment.cluster}": "owned",
        NODEPOOL: f"{PREFIX}orphan",
        NODECLASS: f"{PREFIX}orphan",
    }
    with create_template(environment, "orphan", network) as template:
        response = ec2.create_fleet(**build_fleet_call(environment, template, network, more_tags=tags))
        started_at, instance_ids = environment.get_now(), list_launched_ids(response)
        if not instance_ids:
            raise StepFailed(f"EC2 launched no instance: {', '.join(list_error_codes(response))}")
        wait_until_visible(environment, template, instance_ids)
        is_collected = environment.wait_until(lambda: not list_running_ids(environment, template), ORPHAN_TIMEOUT)
        seconds = round((environment.get_now() - started_at).total_seconds(), 1)
    observed = f"terminated after {seconds:.0f}s" if is_collected else f"still running after {ORPHAN_TIMEOUT}"
    return compare(observed, is_expected=is_collected, evidence={"secondsToTermination": seconds})


def list_running_ids(environment: Environment, name: str) -> list[str]:
    """Return the ids of the pending and running instances called *name*."""
    response = environment.get_client("ec2").describe_instances(
        Filters=[
            {"Name": "tag:Name", "Values": [name]},
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
        ]
    )
    return sorted(
        instance["InstanceId"] for reservation in response["Reservations"] for instance in reservation["Instances"]
    )


def watch_idle_hour(environment: Environment) -> Observation:
    """Change nothing for `idle_minutes`; then list launches, errors, alarms and dead letters of that time."""
    environment.wait_until(lambda: not _list_claims(environment), DRAIN_TIMEOUT)  # of the nodes of earlier steps
    started_at = environment.get_now()
    wait_minutes(environment, environment.idle_minutes)
    instance_ids = list_instance_ids(environment)
    entries = [entry for entry in _read_journal(environment) if entry.at >= started_at]
    errors = sorted({f"{entry.function}: {entry.error}" for entry in entries if entry.error})
    raised = sorted(alarm["AlarmName"] for alarm in list_alarms(environment) if alarm["StateValue"] == "ALARM")
    evidence = {
        "minutes": environment.idle_minutes,
        "instances": instance_ids,
        "nodeClaims": _list_claims(environment),
        "journalEntries": len(entries),
        "errors": errors,
        "alarms": raised,
        "deadLetters": _count_dead_letters(environment),
    }
    problems = {name: evidence[name] for name in ("instances", "nodeClaims", "errors", "alarms", "deadLetters")}
    words = ", ".join(f"{name}: {value}" for name, value in problems.items() if value)
    observed = (
        f"after {environment.idle_minutes} idle minutes: {words or 'no instances, errors, alarms or dead letters'}"
    )
    return compare(observed, is_expected=not any(problems.values()), evidence=evidence)


def _list_claims(environment: Environment) -> list[str]:
    return [claim["metadata"]["name"] for claim in environment.kubectl.list_objects(NODE_CLAIMS_PATH)]


def _read_journal(environment: Environment) -> list[Any]:
    """Return the journal entries of the stack's bucket."""
    s3, bucket = environment.get_client("s3"), get_stack_outputs(environment)["JoinerBucketName"]
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=JOURNAL_PREFIX)
    keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
    return [decode_entry(s3.get_object(Bucket=bucket, Key=key)["Body"].read()) for key in keys]


def _count_dead_letters(environment: Environment) -> int:
    sqs, name = environment.get_client("sqs"), "ApproximateNumberOfMessages"
    urls = [url for url in list_physical_ids(environment, "AWS::SQS::Queue") if url.endswith("dead-letters")]
    return sum(int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name]) for url in urls)
