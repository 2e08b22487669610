"""The guide about images, followed in an embedded world: its manifest, its commands, and what they print."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main
from shared.model.core.labels import CANARY, CANARY_REJECTED, IMAGE_MINIMUM_AGE, LAUNCH_FAILURES
from shared.model.core.units import format_instant
from sim.cluster.api_server.kube_port import InMemoryKube
from tests.scenario.worlds import CLASSES, World, make_deployment, make_node_class, make_node_pool
from tests.support.cli.live_cases import TOKEN, Guarded, serve_kube, write_kubeconfig

pytestmark = pytest.mark.loopback
ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guide" / "images.md").read_text()
CATALOG = str(ROOT / "examples" / "catalogue.json")
Run = Callable[..., str]


def read_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def read_commands(program: str) -> list[list[str]]:
    """Return the words of each command of *program* in the page, without comments."""
    lines = (line.partition("#")[0].split() for block in read_blocks("sh") for line in block.splitlines())
    return [words for words in lines if words[:1] == [program]]


def read_manifest() -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load(read_blocks("yaml")[0])
    return manifest


def build_world(**annotations: str | None) -> World:
    """Return a world with four nodes of an EC2NodeClass with the annotations of the page, changed by *annotations*."""
    node_class = make_node_class()
    texts = read_manifest()["metadata"]["annotations"] | {
        {"age": IMAGE_MINIMUM_AGE, "canary": CANARY}[name]: text for name, text in annotations.items()
    }
    node_class["metadata"]["annotations"] = {key: text for key, text in texts.items() if text}
    pool = make_node_pool(types=("m5.xlarge",), disruption={"budgets": [{"nodes": "2"}]})
    world = World(node_class, pool, make_deployment(16))
    world.wait_until_settled(16)
    world.advance_seconds(330)
    return world


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command of `joiner` on a world and returns what it prints."""

    def run_command(world: World, *words: str) -> str:
        for endpoint in serve_kube(InMemoryKube(world.cluster.api)):
            Guarded.token = TOKEN
            config = write_kubeconfig(tmp_path / "kubeconfig", endpoint, token=TOKEN)
            now = ["--now", format_instant(world.clock.get_time())]
            options = {
                "status": ["--instance-types", CATALOG, "--no-account"],
                "plan": ["--instance-types", CATALOG, *now],
                "explain": now,
            }
            capsys.readouterr()
            assert main([*words, *options.get(words[0], []), "--kubeconfig", config]) == 0
        return " ".join(capsys.readouterr().out.split())

    return run_command


def find_canary_image(world: World, old_images: set[str]) -> str:
    [image] = {instance.image_id for instance in world.list_active_instances()} - old_images
    return image


def test_manifest_of_the_page_has_no_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "class.yaml"
    path.write_text(read_blocks("yaml")[0])
    main(["lint", "-f", str(path), "-o", "json"])
    assert [item for item in json.loads(capsys.readouterr().out) if item["level"] == "error"] == []


def test_new_image_waits_for_its_minimum_age_and_status_says_until_when(run: Run) -> None:
    world = build_world()
    assert "EC2NodeClass default: no new image or launch configuration is tested" in run(world, "status")
    world.cloud.release_amis()
    world.advance_seconds(330)
    for command in (("status",), ("explain", "nodepool", "default")):
        assert "wait for their minimum age of 72h until 2026-11-24T" in run(world, *command)


def test_rejected_image_is_shown_approved_and_rejected_with_the_commands_of_the_page(run: Run) -> None:
    world = build_world(age=None)
    old_images = {instance.image_id for instance in world.list_active_instances()}
    world.cloud.release_amis()
    world.advance_seconds(600)
    image = find_canary_image(world, old_images)
    assert f"canary of image {image}: 0 of 2 nodes passed, 2 running" in run(world, "status")
    node = next(item["status"]["nodeName"] for item in world.list_claims() if item["status"]["imageID"] == image)
    world.cluster.stop_node(node, terminated=False)
    world.wait_until(lambda: world.list_events("default", "CanaryRejected"), 900)
    for command in (("status",), ("explain", "nodepool", "default")):
        assert f"image {image} is rejected: node {node} is not Ready" in run(world, *command)
    approve, reject = read_commands("joiner")
    assert (approve[:3], reject[:3]) == (["joiner", "nodeclass", "approve"], ["joiner", "nodeclass", "reject"])
    assert f"approved: {image}; rejected: none" in run(world, "nodeclass", "approve", image)
    world.wait_until(lambda: image in read_good_images(world), 330)
    assert f"approved: none; rejected: {image}" in run(world, "nodeclass", "reject", image)
    world.wait_until(lambda: image not in read_good_images(world), 330)
    assert world.cluster.api.get(CLASSES, "default")["metadata"]["annotations"][CANARY_REJECTED] == image


def read_good_images(world: World) -> set[str]:
    return {image["id"] for image in world.cluster.api.get(CLASSES, "default")["status"]["amis"]}


def test_pause_of_launches_is_shown_and_ended_with_the_command_of_the_page(run: Run) -> None:
    world = build_world(age=None, canary=None)
    world.instance_booter.is_image_broken = lambda _: True
    world.scale(28)
    world.wait_until(lambda: world.list_events("default", "LaunchesPaused"), 900)
    world.wait_until(lambda: len(world.launched) == 4 + 3 + 1, 600)
    world.wait_until(lambda: len(world.list_claims()) == 4 + 1, 600)
    assert "paused: NodePool default: launches" in run(world, "status")
    assert "Joiner paused launches" in run(world, "explain", "nodepool", "default")
    assert "the last 3 nodes of EC2NodeClass default did not register" in run(world, "plan")
    world.instance_booter.is_image_broken = lambda _: False
    [[_, action, kind, name, change]] = read_commands("kubectl")
    assert (action, kind, name, change) == ("annotate", "ec2nodeclass", "default", f"{LAUNCH_FAILURES}-")
    world.cluster.api.patch(CLASSES, name, {"metadata": {"annotations": {change.removesuffix("-"): None}}})
    world.wait_until(lambda: len(world.list_running_pods()) >= 24, 240)
    world.wait_until_settled(28, 1200)  # the node of the test is replaced 15 minutes after its launch
