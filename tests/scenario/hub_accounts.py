"""Clusters in several embedded accounts, each with a deployed stack, and the operators who may assume their roles."""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import msgspec
import yaml

from shared.report.journal.decision_record import SNAPSHOT_PREFIX
from shared.report.journal.journal import JOURNAL_PREFIX
from sim.aws_account.function_runtime import Credentials
from sim.aws_account.organization import Organization
from tests.contract.account_stage import Stage
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool
from tests.support.hub_guide import read_policies

OPERATORS_ACCOUNT: Final = "123456789012"
EXTERNAL_ID: Final = "joiner-hub"
Objects = Mapping[str, bytes]


class HubAccounts:
    """Accounts by cluster name; the cluster of `OPERATORS_ACCOUNT` is read without a role."""

    def __init__(self, account_by_cluster: Mapping[str, str]) -> None:
        """Create the accounts; nothing is deployed before `open`."""
        self.stages = {
            name: Stage(minute=timedelta(), account_id=number) for name, number in account_by_cluster.items()
        }
        self.organization = Organization([stage.account for stage in self.stages.values()])
        self.buckets: dict[str, str] = {}

    @contextmanager
    def open(self) -> Iterator[None]:
        """Start the accounts, deploy Joiner in each, and create the roles of the guide."""
        with self.organization:
            for name, stage in self.stages.items():
                stage.deploy_joiner(disruption="active", reaction="tick")
                names = [bucket["Name"] for bucket in stage.get_client("s3").list_buckets()["Buckets"]]
                self.buckets[name] = next(bucket for bucket in names if "statebucket" in bucket)
            self._create_roles()
            yield

    def put_objects(self, cluster: str, objects: Objects) -> None:
        """Write *objects* to the bucket of *cluster*, as its functions did."""
        s3 = self.stages[cluster].get_client("s3")
        for key, body in objects.items():
            s3.put_object(Bucket=self.buckets[cluster], Key=key, Body=body)

    def read_objects(self, cluster: str) -> Objects:
        """Return all objects in the bucket of *cluster*."""
        s3, bucket = self.stages[cluster].get_client("s3"), self.buckets[cluster]
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}

    def issue_operator_credentials(self) -> Credentials:
        """Issue credentials of the operators' role."""
        operators = f"arn:aws:iam::{OPERATORS_ACCOUNT}:role/operators"
        return self._find_operators().account.issue_role_credentials(operators, "anna")

    def write_hub_file(self) -> str:
        """Return the text of a hub file with all clusters."""
        clusters = [
            {"name": name, "bucket": self.buckets[name], "region": "us-east-1"}
            | (
                {}
                if stage.account.account_id == OPERATORS_ACCOUNT
                else {"role": f"arn:aws:iam::{stage.account.account_id}:role/joiner-hub", "external-id": EXTERNAL_ID}
            )
            for name, stage in self.stages.items()
        ]
        return yaml.safe_dump({"clusters": clusters}, sort_keys=False)

    def put_role_policy(self, cluster: str, statements: Sequence[Mapping[str, Any]]) -> None:
        """Replace the permissions of the role of *cluster*."""
        document = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
        iam = self.stages[cluster].get_client("iam")
        iam.put_role_policy(RoleName="joiner-hub", PolicyName="read", PolicyDocument=document)

    def set_trust_policy(self, cluster: str, external_id: str) -> None:
        """Make the role of *cluster* require *external_id*."""
        document = json.dumps(read_policies()[0]).replace(EXTERNAL_ID, external_id)
        iam = self.stages[cluster].get_client("iam")
        iam.update_assume_role_policy(RoleName="joiner-hub", PolicyDocument=document)

    def put_operator_policy(self, name: str, document: Mapping[str, Any]) -> None:
        """Give the operators' role the policy *document*."""
        iam = self._find_operators().get_client("iam")
        iam.put_role_policy(RoleName="operators", PolicyName=name, PolicyDocument=json.dumps(document))

    def delete_object(self, cluster: str, key: str) -> None:
        """Delete an object from the bucket of *cluster*."""
        self.stages[cluster].get_client("s3").delete_object(Bucket=self.buckets[cluster], Key=key)

    def _find_operators(self) -> Stage:
        return next(stage for stage in self.stages.values() if stage.account.account_id == OPERATORS_ACCOUNT)

    def _create_roles(self) -> None:
        operator_iam = self._find_operators().get_client("iam")
        trust = {"Effect": "Allow", "Principal": {"AWS": OPERATORS_ACCOUNT}, "Action": "sts:AssumeRole"}
        operator_iam.create_role(
            RoleName="operators",
            AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
        )
        for name, stage in self.stages.items():
            trust_policy, permissions, assume = read_policies(
                bucket=self.buckets[name], account=stage.account.account_id
            )
            is_own_account = stage.account.account_id == OPERATORS_ACCOUNT
            operator_iam.put_role_policy(
                RoleName="operators",
                PolicyName=name,
                PolicyDocument=json.dumps(permissions if is_own_account else assume),
            )
            if not is_own_account:
                iam = stage.get_client("iam")
                iam.create_role(RoleName="joiner-hub", AssumeRolePolicyDocument=json.dumps(trust_policy))
                iam.put_role_policy(RoleName="joiner-hub", PolicyName="read", PolicyDocument=json.dumps(permissions))


def build_cluster(pods: int, *, seed: int) -> World:
    """Return a cluster with *pods* running pods; *seed* selects names and prices."""
    world = World(make_node_class(), make_node_pool(), make_deployment(pods), seed=seed)
    world.wait_until_settled(pods)
    return world


def copy_objects(world: World) -> Objects:
    """Return the objects that the functions of *world* stored so far."""
    return {key: world.bucket.get(key) for key in world.bucket.list_keys("")}


def rewrite_as_next_version(objects: Objects) -> Objects:
    """Return *objects* as a later version of Joiner could write them.

    Every entry has a new field and an action of a new kind, and every record a new field.
    """
    return {key: _rewrite(key, body) for key, body in objects.items()}


def _rewrite(key: str, body: bytes) -> bytes:
    if key.startswith(JOURNAL_PREFIX):
        entry = msgspec.json.decode(body)
        action = {"result": "done", "action": {"kind": "MoveNode", "node": "a"}}
        code = {"code": "next-release"} if entry.get("code") else {}
        return msgspec.json.encode(entry | code | {"done": [*entry.get("done", ()), action], "added": 1})
    if key.startswith(SNAPSHOT_PREFIX):
        record = msgspec.json.decode(gzip.decompress(body))
        return gzip.compress(msgspec.json.encode(record | {"added": 1}))
    return body


def break_newest_record(objects: Objects) -> Objects:
    """Return *objects* with a newest record whose pods have a form that this version does not know."""
    keys = [key for key in objects if key.startswith(f"{JOURNAL_PREFIX}disrupt/")]
    record_key = msgspec.json.decode(objects[max(keys)])["snapshot"]
    record = msgspec.json.decode(gzip.decompress(objects[record_key]))
    record["cluster"]["pods"] = {"columns": []}
    return {**objects, record_key: gzip.compress(msgspec.json.encode(record))}
