"""`joiner hub` over HTTP in an embedded organization: assumed roles, refused roles, old data and another version."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from cli.main import main
from shared.model.core.labels import DISRUPTION_PAUSED
from shared.model.core.units import format_instant
from tests.scenario.hub_accounts import (
    HubAccounts,
    break_newest_record,
    build_cluster,
    copy_objects,
    rewrite_as_next_version,
)
from tests.scenario.worlds import POOLS, World, make_deployment
from tests.support.hub_guide import read_policies, read_report_policy

pytestmark = pytest.mark.loopback
ACCOUNTS: Final = {
    "prod": "123456789012",
    "batch": "444455556666",
    "locked": "555566667777",
    "old": "666677778888",
    "next": "777788889999",
}
ALL_VALUES: Final = ["nodes", "price", "cost of the day", "cost of the month", "pending pods", "drifted nodes"]
Out = pytest.CaptureFixture[str]


class Clusters:
    """The clusters, and the accounts in which their stacks are."""

    def __init__(self) -> None:
        """Run Joiner for three hours in two clusters; the cluster `old` stops after some minutes."""
        self.prod, self.batch = build_cluster(6, seed=1), build_cluster(2, seed=2)
        old_objects = copy_objects(self.prod)
        pause = {"metadata": {"annotations": {DISRUPTION_PAUSED: "true by anna because audit"}}}
        self.batch.cluster.api.patch(POOLS, "default", pause)
        for world in (self.prod, self.batch):
            world.advance_seconds(3 * 3600)
        self.batch.apply([make_deployment(1, "huge", cpu="300")])
        for world in (self.prod, self.batch):
            world.advance_seconds(90)
        self.now: datetime = self.prod.clock.get_time()
        self.accounts = HubAccounts(ACCOUNTS)
        self.objects = {
            "prod": copy_objects(self.prod),
            "batch": copy_objects(self.batch),
            "locked": copy_objects(self.prod),
            "old": old_objects,
            "next": break_newest_record(rewrite_as_next_version(copy_objects(self.prod))),
        }


@pytest.fixture(scope="module")
def clusters() -> Iterator[Clusters]:
    clusters = Clusters()
    with clusters.accounts.open():
        for name, objects in clusters.objects.items():
            clusters.accounts.put_objects(name, objects)
        clusters.accounts.set_trust_policy("locked", "another-id")
        yield clusters


class Hub:
    """The command as an operator runs it."""

    def __init__(self, clusters: Clusters, folder: Path, capsys: Out) -> None:
        """Write the hub file to *folder*."""
        self._clusters, self._file, self._capsys = clusters, folder / "hub.yaml", capsys
        self._file.write_text(clusters.accounts.write_hub_file())

    def read(self, now: datetime | None = None) -> tuple[int, dict[str, Any]]:
        """Return the exit code and the document."""
        status, text = self.run("-o", "json", now=now)
        return status, json.loads(text)

    def read_clusters(self) -> dict[str, Any]:
        """Return the clusters by name."""
        return {cluster["name"]: cluster for cluster in self.read()[1]["clusters"]}

    def run(self, *arguments: str, now: datetime | None = None) -> tuple[int, str]:
        """Return the exit code and the output."""
        time = format_instant(now or self._clusters.now)
        status = main(["hub", str(self._file), "--now", time, *arguments])
        return status, self._capsys.readouterr().out


@pytest.fixture
def hub(clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> Hub:
    environment = clusters.accounts.issue_operator_credentials().build_environment()
    for name, value in {**environment, "AWS_ENDPOINT_URL": clusters.accounts.organization.url}.items():
        monkeypatch.setenv(name, value)
    return Hub(clusters, tmp_path, capsys)


def count_nodes(world: World) -> int:
    return len(world.list_active_instances())


def test_hub_shows_the_clusters_that_it_can_read_and_names_the_others(clusters: Clusters, hub: Hub) -> None:
    status, document = hub.read()
    rows = {row["name"]: row for row in document["clusters"]}
    assert status == 1
    prod, batch = rows["prod"], rows["batch"]
    assert (prod["error"], prod["nodes"], prod["pendingPods"]) == (None, count_nodes(clusters.prod), 0)
    assert (batch["nodes"], batch["pendingPods"], len(batch["pauses"])) == (count_nodes(clusters.batch), 1, 1)
    assert "audit" in batch["pauses"][0]
    assert {row["kubernetesVersion"] for name, row in rows.items() if name != "locked"} == {"1.34"}
    assert prod["monthUsd"] > batch["monthUsd"] > 0
    assert set(rows["locked"]) == {"name", "error", "remarks", "nextSteps"}
    assert "sts:AssumeRole arn:aws:iam::555566667777:role/joiner-hub" in rows["locked"]["error"]
    assert "check role and external-id" in rows["locked"]["error"]


def test_cluster_that_could_not_be_read_is_in_no_total_and_not_zero(hub: Hub) -> None:
    _, document = hub.read()
    rows = [row for row in document["clusters"] if row["name"] != "locked"]
    totals = document["totals"]
    assert totals["nodes"] == sum(row["nodes"] for row in rows)
    assert totals["usdPerHour"] == pytest.approx(sum(row["usdPerHour"] for row in rows))
    assert totals["missing"][0] == {"cluster": "locked", "values": ALL_VALUES}
    status, text = hub.run("--wide")
    assert status == 1
    assert "4 of 5 clusters: " in text
    assert "not in the totals, because they could not be read: locked\n" in text


def test_old_data_is_shown_as_old_and_its_pending_pods_are_unknown(clusters: Clusters, hub: Hub) -> None:
    _, document = hub.read()
    old = next(row for row in document["clusters"] if row["name"] == "old")
    assert (old["silent"], old["pendingPods"]) == (True, None)
    assert old["nodes"] == count_nodes(clusters.prod)
    assert old["fleetAt"] < document["clusters"][0]["fleetAt"]
    assert {"cluster": "old", "values": ["cost of the day", "pending pods"]} in document["totals"]["missing"]
    text = hub.run("--wide")[1]
    assert "old: no journal entry for 3h" in text
    assert "old: costs only until 2026-11-21T08:00:00Z" in text


def test_another_version_is_read_as_far_as_this_version_can(clusters: Clusters, hub: Hub) -> None:
    row = hub.read_clusters()["next"]
    assert (row["error"], row["code"], row["nodes"]) == (None, "next-release", count_nodes(clusters.prod))
    assert len(row["messages"]) == 1
    assert "the decision record or its catalog could not be read" in row["messages"][0]


def test_if_no_cluster_can_be_read_nothing_is_zero(clusters: Clusters, hub: Hub) -> None:
    status, document = hub.read(clusters.now + timedelta(days=3))
    totals = document["totals"]
    assert status == 1
    assert [row["error"][:41] for row in document["clusters"] if row["name"] != "locked"] == [
        "no journal entries of the last 2 days: ch"
    ] * 4
    assert {totals[name] for name in ("nodes", "usdPerHour", "dayUsd", "monthUsd", "pendingPods")} == {None}
    assert "0 of 5 clusters: ? nodes, ?, ? today" in hub.run("--wide", now=clusters.now + timedelta(days=3))[1]


def test_role_without_a_permission_is_named_and_the_others_are_read(clusters: Clusters, hub: Hub) -> None:
    batch_stage, bucket = clusters.accounts.stages["batch"], clusters.accounts.buckets["batch"]
    statements = read_policies(bucket=bucket, account=batch_stage.account.account_id)[1]["Statement"]
    clusters.accounts.put_role_policy("batch", statements[:1])
    try:
        rows = hub.read_clusters()
    finally:
        clusters.accounts.put_role_policy("batch", statements)
    assert "s3:GetObject" in rows["batch"]["error"]
    role = "arn:aws:iam::444455556666:role/joiner-hub"
    assert f"check the permissions of {role} on the bucket" in rows["batch"]["error"]
    assert rows["prod"]["error"] is None
    assert hub.read_clusters()["batch"]["error"] is None


def test_suggested_commands_work_with_the_role(
    clusters: Clusters, hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    steps = {step["purpose"]: step["command"] for step in hub.read_clusters()["batch"]["nextSteps"]}
    assert (
        "assume-role --role-arn arn:aws:iam::444455556666:role/joiner-hub"
        in steps["use the role in this shell for an hour"]
    )
    role = "arn:aws:iam::444455556666:role/joiner-hub"
    credentials = clusters.accounts.stages["batch"].account.issue_role_credentials(role, "joiner-hub")
    for name, value in credentials.build_environment().items():
        monkeypatch.setenv(name, value)
    words = steps["see the costs by NodePool"].split()
    assert words[:3] == ["AWS_REGION=us-east-1", "joiner", "cost"]
    assert main([*words[2:], "-o", "json"]) == 0
    capsys.readouterr()
    source = words[words.index("--journal") + 1]
    assert source in steps["open the interactive page of the cluster"]
    assert main(["report", "-", "--journal", source, "-o", "json", "--now", format_instant(clusters.now)]) == 0


def test_daily_report_is_sent_to_a_topic_if_the_sender_may_publish(clusters: Clusters, hub: Hub) -> None:
    account = clusters.accounts.stages["prod"]
    topic = account.get_client("sns").create_topic(Name="reports")["TopicArn"]
    queue = account.get_client("sqs").create_queue(QueueName="reports")["QueueUrl"]
    account.get_client("sns").subscribe(
        TopicArn=topic, Protocol="sqs", Endpoint="arn:aws:sqs:us-east-1:123456789012:reports"
    )
    tomorrow = clusters.now.replace(hour=3) + timedelta(days=1)
    status, text = hub.run("--daily", "--topic", topic, now=tomorrow)
    assert status == 1
    assert text.startswith("# cost of 5 clusters on 2026-11-21 unknown (UTC)\n")
    clusters.accounts.put_operator_policy("send", read_report_policy())
    for name, usd in {"prod": 12.0, "batch": 3.0}.items():
        clusters.accounts.put_objects(name, {"costs/2026-11-21.json": build_cost_report(usd)})
    try:
        status, text = hub.run("--daily", "--topic", topic, now=tomorrow)
    finally:
        for name in ("prod", "batch"):
            clusters.accounts.delete_object(name, "costs/2026-11-21.json")
    assert status == 1
    assert text.startswith("# 2 of 5 clusters cost $15.00 on 2026-11-21 (UTC)\n")
    assert "- Not included, because the cost of the day is unknown: locked, old, next\n" in text
    [message] = account.get_client("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    body = json.loads(message["Body"])
    assert (body["Subject"], body["Message"]) == ("Joiner: 2 of 5 clusters cost $15.00 on 2026-11-21", text)


def build_cost_report(usd: float) -> bytes:
    """Return the report of 2026-11-21."""
    times = {"since": "2026-11-21T00:00:00Z", "until": "2026-11-22T00:00:00Z"}
    amounts = {"usd": usd, "nodeHours": 48, "savedBySpotUsd": 0, "idleUsd": 0}
    return json.dumps({"day": "2026-11-21", "cluster": "demo", **times, **amounts}).encode()


def test_hub_changes_no_bucket(clusters: Clusters, hub: Hub) -> None:
    before = {name: clusters.accounts.read_objects(name) for name in ACCOUNTS}
    hub.read()
    assert {name: clusters.accounts.read_objects(name) for name in ACCOUNTS} == before
    assert before["batch"] == clusters.objects["batch"]
