"""`joiner explain` as a command: folders and buckets that it reads, its page, its JSON, and what it says of a lack."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from cli.explain.answers import explain_object
from cli.explain.kinds import EXPLAIN_KINDS
from cli.explain.page import render_explanation
from cli.journal import journal as explain_journal
from cli.journal.journal import read_bucket_entries
from cli.main import main
from shared.errors import Forbidden, NotFound
from shared.report.journal.journal import build_entry_key
from sim.scenarios import runner
from sim.time.virtual_clock import DEFAULT_START_TIME
from sim.world.embedded_world import EmbeddedWorld
from tests.support.plays import make_deployment, narrow
from tests.support.plays import make_scenario_document as scenario
from tests.unit.cli.explain.explained_journals import (
    LAUNCH_ENTRIES,
    PLAIN,
    TERMINATION_ENTRIES,
    Recorded,
    build_journal_evidence,
    build_recorded_bucket,
    make_entry,
    make_note,
    run,
    write_journal,
)

Out = pytest.CaptureFixture[str]


def test_explain_page_has_answers_history_and_journal_range(tmp_path: Path, capsys: Out) -> None:
    assert run("node", "n1", write_journal(tmp_path, *LAUNCH_ENTRIES, *TERMINATION_ENTRIES)) == 0
    output = capsys.readouterr().out
    assert output.startswith("node n1\n\nnames             node n1, NodeClaim c1")
    assert "HISTORY (UTC, until 2026-11-21 09:03:00)" in output
    assert "\n08:00:00    1h3m ago  provision  NodeClaim c1 created: 2 pods" in output
    assert "8 cycles from 2026-11-21 08:00:00 to 2026-11-21 09:03:00 UTC" in output


def test_json_and_yaml_output_are_equal_with_stable_keys(tmp_path: Path, capsys: Out) -> None:
    journal = write_journal(tmp_path, *LAUNCH_ENTRIES, *TERMINATION_ENTRIES)
    assert run("node", "n1", journal, "-o", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert run("node", "n1", journal, "-o", "yaml") == 0
    assert yaml.safe_load(capsys.readouterr().out) == document
    assert sorted(document) == ["answers", "apiVersion", "cost", "history", "journal", "kind", "name"]
    assert document["cost"] == {"usd": 0.062, "usdPerHour": 0.0, "hours": 1.0333}
    first = document["history"][0]
    assert (first["at"], first["secondsAgo"], first["times"]) == ("2026-11-21T08:00:00Z", 3780, 1)
    assert first["cycle"] == "journal/provision/2026/11/21/080000-000.json"
    assert (document["journal"]["cycles"], document["journal"]["to"]) == (8, "2026-11-21T09:03:00Z")


def test_since_option_counts_from_the_last_cycle_or_the_given_time(tmp_path: Path, capsys: Out) -> None:
    journal = write_journal(tmp_path, *LAUNCH_ENTRIES, *TERMINATION_ENTRIES)
    assert run("node", "n1", journal, "--since", "10m", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["journal"]["cycles"] == 5
    flags = ("--since", "10m", "--now", "2026-11-21T09:12:00Z", "-o", "json")
    assert run("node", "n1", journal, *flags) == 0
    assert json.loads(capsys.readouterr().out)["journal"]["cycles"] == 2


def test_old_history_shows_dates_and_long_history_is_truncated() -> None:
    entries = [make_entry(at, notes=(make_note("Node", "n1", "kept", f"reason {at}"),)) for at in range(50)]
    evidence = build_journal_evidence(*entries, minutes=3 * 1440)
    explanation = explain_object(evidence, "node", "n1")
    short = render_explanation(explanation, evidence, PLAIN, 80, is_whole=False)
    assert "… 10 earlier lines (--all shows them)" in short
    assert "2026-11-21 08:10:00   2d23h ago  provision  Node n1 kept: reason 10" in short
    assert "reason 9" not in short
    assert "earlier" not in render_explanation(explanation, evidence, PLAIN, None, is_whole=True)
    assert max(map(len, short.splitlines())) <= 80


def test_failed_cycles_are_reported(tmp_path: Path, capsys: Out) -> None:
    failed = make_entry(70, error="Unreachable: kube.list /api/v1/pods: outage")
    assert run("node", "n1", write_journal(tmp_path, *LAUNCH_ENTRIES, failed)) == 0
    assert "1 cycle failed, most recently provision: Unreachable: kube.list" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        ("pod", "shop/carts", "did you mean shop/cart or shop/till?"),
        ("pod", "ill", "did you mean shop/till?"),
        ("pod", "zzz", "; the journal contains shop/cart, shop/till"),
        ("node", "zz", "; the journal contains c1, i-1, n1"),
        ("pod", "n1", "not found, but there is a node of this name"),
        ("command", "x", "not found; the journal has no commands"),
    ],
)
def test_unknown_object_is_reported_with_similar_names(
    kind: str, name: str, hint: str, tmp_path: Path, capsys: Out
) -> None:
    assert run(kind, name, write_journal(tmp_path, *LAUNCH_ENTRIES)) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert hint in captured.err
    assert "3 cycles from 2026-11-21 08:00:00 to 2026-11-21 08:02:00 UTC" in captured.err
    assert "--since" not in captured.err


def test_unknown_object_in_a_limited_journal_range_suggests_a_longer_since(tmp_path: Path, capsys: Out) -> None:
    assert run("node", "zzz", write_journal(tmp_path, *LAUNCH_ENTRIES), "--since", "1s") == 1
    assert "a longer --since reads more" in capsys.readouterr().err


def test_ambiguous_pod_name_requires_a_namespace(tmp_path: Path, capsys: Out) -> None:
    twice = make_entry(
        0, notes=(make_note("Pod", "a/cart", "NotReached", "x"), make_note("Pod", "b/cart", "NotReached", "x"))
    )
    assert run("pod", "cart", write_journal(tmp_path, twice)) == 1
    assert "is ambiguous: write one of a/cart, b/cart" in capsys.readouterr().err


def test_invalid_journal_entries_are_named_and_the_rest_is_explained(tmp_path: Path, capsys: Out) -> None:
    journal = write_journal(tmp_path, *LAUNCH_ENTRIES)
    for number in range(5):
        (tmp_path / "journal" / f"broken-{number}.json").write_text("{")
    (tmp_path / "journal" / "locked.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "costs.json").write_text("{}")
    assert run("node", "n1", journal) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("node n1")
    assert "joiner explain: journal/broken-0.json: not a journal entry" in captured.err
    assert "costs" not in captured.err
    assert "and 3 more files" in captured.err


def test_missing_journal_folder_is_reported_with_a_fix(tmp_path: Path, capsys: Out) -> None:
    assert run("node", "n1", str(tmp_path / "nowhere")) == 1
    assert "folder not found; name a folder with a journal (`joiner demo --journal" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert run("node", "n1", str(tmp_path / "file")) == 1
    assert "not a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--journal", "x", "--since", "soon"],
        ["--journal", "x", "--since", "0s"],
        ["--journal", "x", "--now", "later"],
    ],
)
def test_invalid_options_are_rejected(flags: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    with pytest.raises(SystemExit, match="2"):
        main(["explain", "node", "n1", *flags])
    assert "usage: joiner explain" in capsys.readouterr().err


def test_help_has_examples_and_exit_codes(capsys: Out) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["explain", "--help"])
    output = capsys.readouterr().out
    assert "--journal examples/journal" in output
    assert "exit codes: 0 explained" in output
    assert all(kind in output for kind in EXPLAIN_KINDS)


# A bucket


def test_bucket_journal_is_listed_only_for_the_needed_days() -> None:
    old, before = make_entry(-3000), make_entry(-600)
    bucket = build_recorded_bucket(old, before, *LAUNCH_ENTRIES)
    entries = read_bucket_entries(bucket, "", DEFAULT_START_TIME + timedelta(minutes=3), timedelta(minutes=2))
    assert {key for key, _ in entries} == {
        build_entry_key(LAUNCH_ENTRIES[1], "x"),
        build_entry_key(LAUNCH_ENTRIES[2], "x"),
    }
    assert {prefix.split("/", 2)[2] for prefix in bucket.listed} == {"2026/11/21/"}
    entries = read_bucket_entries(bucket, "", DEFAULT_START_TIME, timedelta(hours=12))
    assert build_entry_key(before, "x") in dict(entries)
    assert build_entry_key(old, "x") not in dict(entries)


def test_bucket_journal_may_have_another_prefix() -> None:
    bucket = build_recorded_bucket(*LAUNCH_ENTRIES, under="prod/")
    entries = read_bucket_entries(bucket, "prod/journal/", DEFAULT_START_TIME + timedelta(hours=1), timedelta(days=1))
    assert len(entries) == len(LAUNCH_ENTRIES)


def test_journal_entry_expired_during_the_read_is_reported() -> None:
    class Expiring(Recorded):
        def get(self, key: str) -> bytes:
            raise NotFound(key)

    bucket = Expiring()
    bucket.put(build_entry_key(LAUNCH_ENTRIES[0], "x"), b"{}")
    [(_, message)] = read_bucket_entries(bucket, "", DEFAULT_START_TIME + timedelta(hours=1), timedelta(days=1))
    assert message == "expired while the journal was read"


def test_bucket_from_the_environment_is_read_and_denied_access_is_reported(
    capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOINER_BUCKET_NAME", "b")
    monkeypatch.setattr("cli.journal.journal.get_default_region", lambda: "us-east-1")
    bucket = build_recorded_bucket(*LAUNCH_ENTRIES)
    monkeypatch.setattr("shared.aws.s3.S3Bucket", lambda _, name: bucket if name == "b" else None)
    assert main(["explain", "node", "n1", "--now", "2026-11-21T09:00:00Z"]) == 0
    assert "s3://b: 3 cycles" in capsys.readouterr().out

    def raise_forbidden(*_: object) -> None:
        raise Forbidden("s3:ListObjectsV2")

    monkeypatch.setattr(explain_journal, "read_bucket_entries", raise_forbidden)
    assert main(["explain", "node", "n1"]) == 1
    assert "--journal s3://b: Forbidden: s3:ListObjectsV2: check your identity" in capsys.readouterr().err
    assert run("node", "n1", "s3://") == 1
    assert "no bucket name: write s3://BUCKET" in capsys.readouterr().err


# The whole way


def test_journal_recorded_by_a_demo_can_be_explained(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build_small_world(seed: int) -> EmbeddedWorld:
        world = EmbeddedWorld(seed)
        narrow(world)
        return world

    monkeypatch.setattr(runner, "EmbeddedWorld", build_small_world)
    act = {"name": "one", "do": [{"apply": make_deployment(2)}], "within": "4m", "expect": {"running": 2}}
    (tmp_path / "play.yaml").write_text(yaml.safe_dump(scenario(act)), encoding="utf-8")
    journal_folder = str(tmp_path / "kept")
    arguments = ["demo", "--scenario", str(tmp_path / "play.yaml"), "--page", "none", "--journal", journal_folder]
    assert main(arguments) == 0
    assert f"journal: {journal_folder}" in capsys.readouterr().out
    assert main(arguments) == 1
    assert "already has a journal: remove it, or choose another folder" in capsys.readouterr().err
    assert run("nodepool", "default", journal_folder, "-o", "json") == 0
    pool = json.loads(capsys.readouterr().out)
    words = {answer["question"]: answer["sentences"] for answer in pool["answers"]}
    assert words["nodes"] == ["1 in this period, 1 still running"]
    assert pool["cost"]["usdPerHour"] > 0
    [created] = [line for line in pool["history"] if line["message"].endswith("created")]
    assert run("nodeclaim", created["message"].split()[1], journal_folder) == 0
    output = capsys.readouterr().out
    assert "created for       2 pods: default/web-" in output
    assert "registered: the node of" in output
    (tmp_path / "taken").write_text("")
    assert main([*arguments[:-1], str(tmp_path / "taken")]) == 1
    assert "taken" in capsys.readouterr().err
