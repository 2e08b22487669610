"""`joiner explain` as a command: folders and buckets that it reads, its page, its JSON, and what it says of a lack."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from cli import explain_journals
from cli.explain_answers import explained
from cli.explain_journals import cycles_of
from cli.explain_kinds import KINDS
from cli.explain_page import page
from cli.main import main
from shared.errors import Forbidden, Gone
from shared.report.journal import key_of
from sim import play
from sim.clock import START
from sim.embedded import Embedded
from tests.unit.explained_journals import (
    GONE,
    MADE,
    PLAIN,
    Recorded,
    entry,
    filled,
    look,
    note,
    run,
    written,
)
from tests.unit.plays import deployment, narrow
from tests.unit.plays import document as scenario

Out = pytest.CaptureFixture[str]


def test_the_page_has_answers_the_story_and_what_the_journal_covers(tmp_path: Path, capsys: Out) -> None:
    assert run("node", "n1", written(tmp_path, *MADE, *GONE)) == 0
    told = capsys.readouterr().out
    assert told.startswith("node n1\n\nis                node n1, NodeClaim c1")
    assert "WHAT HAPPENED, in UTC and before 2026-11-21 09:03:00" in told
    assert "\n08:00:00  -1:03:00  provision  NodeClaim c1 created: 2 pods" in told
    assert "8 cycles from 2026-11-21 08:00:00 to 2026-11-21 09:03:00 UTC" in told


def test_json_and_yaml_say_the_same_with_stable_keys(tmp_path: Path, capsys: Out) -> None:
    journal = written(tmp_path, *MADE, *GONE)
    assert run("node", "n1", journal, "-o", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert run("node", "n1", journal, "-o", "yaml") == 0
    assert yaml.safe_load(capsys.readouterr().out) == told
    assert sorted(told) == ["answers", "cost", "happened", "journal", "kind", "name"]
    assert told["cost"] == {"usd": 0.062, "usdPerHour": 0.0, "hours": 1.0333}
    first = told["happened"][0]
    assert (first["at"], first["secondsAgo"], first["times"]) == ("2026-11-21T08:00:00Z", 3780, 1)
    assert first["cycle"] == "journal/provision/2026/11/21/080000-000.json"
    assert (told["journal"]["cycles"], told["journal"]["to"]) == (8, "2026-11-21T09:03:00Z")


def test_since_counts_back_from_the_last_cycle_or_from_now(tmp_path: Path, capsys: Out) -> None:
    journal = written(tmp_path, *MADE, *GONE)
    assert run("node", "n1", journal, "--since", "10m", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["journal"]["cycles"] == 5
    flags = ("--since", "10m", "--now", "2026-11-21T09:12:00Z", "-o", "json")
    assert run("node", "n1", journal, *flags) == 0
    assert json.loads(capsys.readouterr().out)["journal"]["cycles"] == 2


def test_an_old_story_has_dates_and_a_long_one_is_cut() -> None:
    many = [entry(at, notes=(note("Node", "n1", "kept", f"reason {at}"),)) for at in range(50)]
    seen = look(*many, minutes=3 * 1440)
    said = explained(seen, "node", "n1")
    short = page(said, seen, PLAIN, 80, is_whole=False)
    assert "… 10 earlier lines (--all shows them)" in short
    assert "2026-11-21 08:10:00   -2d 23h  provision  Node n1 kept: reason 10" in short
    assert "reason 9" not in short
    assert "earlier" not in page(said, seen, PLAIN, None, is_whole=True)
    assert max(map(len, short.splitlines())) <= 80


def test_cycles_that_failed_are_told(tmp_path: Path, capsys: Out) -> None:
    failed = entry(70, error="Unreachable: kube.list /api/v1/pods: outage")
    assert run("node", "n1", written(tmp_path, *MADE, failed)) == 0
    assert "1 cycle failed, last provision: Unreachable: kube.list" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        ("pod", "shop/carts", "do you mean shop/cart or shop/till?"),
        ("pod", "ill", "do you mean shop/till?"),
        ("pod", "zzz", "known are shop/cart, shop/till"),
        ("node", "zz", "known are c1, i-1, n1"),
        ("pod", "n1", "not known; there is a node of that name"),
        ("command", "x", "nothing is known of it, nor of any other command"),
    ],
)
def test_what_is_not_known_is_said_with_what_is_like_it(
    kind: str, name: str, hint: str, tmp_path: Path, capsys: Out
) -> None:
    assert run(kind, name, written(tmp_path, *MADE)) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert hint in told.err
    assert "3 cycles from 2026-11-21 08:00:00 to 2026-11-21 08:02:00 UTC" in told.err
    assert "--since" not in told.err


def test_who_looked_at_a_part_only_is_told_that_there_may_be_more(tmp_path: Path, capsys: Out) -> None:
    assert run("node", "zzz", written(tmp_path, *MADE), "--since", "1s") == 1
    assert "a longer --since sees more" in capsys.readouterr().err


def test_a_pod_whose_name_is_in_several_namespaces_is_asked_for(tmp_path: Path, capsys: Out) -> None:
    twice = entry(0, notes=(note("Pod", "a/cart", "NotReached", "x"), note("Pod", "b/cart", "NotReached", "x")))
    assert run("pod", "cart", written(tmp_path, twice)) == 1
    assert "there are several: write one of a/cart, b/cart" in capsys.readouterr().err


def test_what_cannot_be_read_is_named_and_the_rest_is_told(tmp_path: Path, capsys: Out) -> None:
    journal = written(tmp_path, *MADE)
    for number in range(5):
        (tmp_path / "journal" / f"broken-{number}.json").write_text("{")
    (tmp_path / "journal" / "locked.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "costs.json").write_text("{}")
    assert run("node", "n1", journal) == 1
    told = capsys.readouterr()
    assert told.out.startswith("node n1")
    assert "joiner explain: journal/broken-0.json: no entry of a journal" in told.err
    assert "costs" not in told.err
    assert "and 3 more files" in told.err


def test_a_folder_that_is_not_there_is_named_with_a_remedy(tmp_path: Path, capsys: Out) -> None:
    assert run("node", "n1", str(tmp_path / "nowhere")) == 1
    assert "no such folder: name one that holds a journal (`joiner demo --journal" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert run("node", "n1", str(tmp_path / "file")) == 1
    assert "is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--journal", "x", "--since", "soon"],
        ["--journal", "x", "--since", "0s"],
        ["--journal", "x", "--now", "later"],
    ],
)
def test_wrong_usage_is_refused(flags: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    with pytest.raises(SystemExit, match="2"):
        main(["explain", "node", "n1", *flags])
    assert "usage: joiner explain" in capsys.readouterr().err


def test_help_has_examples_and_exit_codes(capsys: Out) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["explain", "--help"])
    told = capsys.readouterr().out
    assert "joiner demo --journal" in told
    assert "exit codes: 0 something is known" in told
    assert all(kind in told for kind in KINDS)


# A bucket


def test_of_a_bucket_only_the_days_that_count_are_listed_and_read() -> None:
    old, before = entry(-3000), entry(-600)
    bucket = filled(old, before, *MADE)
    found = cycles_of(bucket, "", START + timedelta(minutes=3), timedelta(minutes=2))
    assert {key for key, _ in found} == {key_of(MADE[1], "x"), key_of(MADE[2], "x")}
    assert {prefix.split("/", 2)[2] for prefix in bucket.listed} == {"2026/11/21/"}
    found = cycles_of(bucket, "", START, timedelta(hours=12))
    assert key_of(before, "x") in dict(found)
    assert key_of(old, "x") not in dict(found)


def test_a_bucket_may_have_the_journal_under_another_prefix() -> None:
    bucket = filled(*MADE, under="prod/")
    found = cycles_of(bucket, "prod/journal/", START + timedelta(hours=1), timedelta(days=1))
    assert len(found) == len(MADE)


def test_an_entry_that_expires_meanwhile_is_named() -> None:
    class Expiring(Recorded):
        def get(self, key: str) -> bytes:
            raise Gone(key)

    bucket = Expiring()
    bucket.put(key_of(MADE[0], "x"), b"{}")
    [(_, said)] = cycles_of(bucket, "", START + timedelta(hours=1), timedelta(days=1))
    assert said == "is gone: it became too old meanwhile"


def test_the_bucket_of_the_environment_is_read_and_one_that_does_not_answer_is_named(
    capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOINER_BUCKET_NAME", "b")
    monkeypatch.setattr("cli.explain_journals.region_here", lambda: "us-east-1")
    bucket = filled(*MADE)
    monkeypatch.setattr("shared.aws.s3.S3Bucket", lambda _, name: bucket if name == "b" else None)
    assert main(["explain", "node", "n1", "--now", "2026-11-21T09:00:00Z"]) == 0
    assert "s3://b: 3 cycles" in capsys.readouterr().out

    def forbidden(*_: object) -> None:
        raise Forbidden("s3:ListObjectsV2")

    monkeypatch.setattr(explain_journals, "cycles_of", forbidden)
    assert main(["explain", "node", "n1"]) == 1
    assert "--journal s3://b: Forbidden: s3:ListObjectsV2: see that" in capsys.readouterr().err
    assert run("node", "n1", "s3://") == 1
    assert "names no bucket: write s3://BUCKET" in capsys.readouterr().err


# The whole way


def test_the_journal_of_a_demo_can_be_asked(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    def small(seed: int) -> Embedded:
        world = Embedded(seed)
        narrow(world)
        return world

    monkeypatch.setattr(play, "Embedded", small)
    act = {"name": "one", "do": [{"apply": deployment(2)}], "within": "4m", "expect": {"running": 2}}
    (tmp_path / "play.yaml").write_text(yaml.safe_dump(scenario(act)), encoding="utf-8")
    kept = str(tmp_path / "kept")
    arguments = ["demo", "--scenario", str(tmp_path / "play.yaml"), "--page", "none", "--journal", kept]
    assert main(arguments) == 0
    assert f"journal: {kept}" in capsys.readouterr().out
    assert main(arguments) == 1
    assert "holds a journal already: remove it, or name another folder" in capsys.readouterr().err
    assert run("nodepool", "default", kept, "-o", "json") == 0
    pool = json.loads(capsys.readouterr().out)
    words = {one["question"]: one["words"] for one in pool["answers"]}
    assert words["machines"] == ["1 known, 1 there at the end"]
    assert pool["cost"]["usdPerHour"] > 0
    [made] = [one for one in pool["happened"] if one["what"].endswith("created")]
    assert run("nodeclaim", made["what"].split()[1], kept) == 0
    told = capsys.readouterr().out
    assert "made for          2 pods: default/web-" in told
    assert "registered: the node of" in told
    (tmp_path / "taken").write_text("")
    assert main([*arguments[:-1], str(tmp_path / "taken")]) == 1
    assert "taken" in capsys.readouterr().err
