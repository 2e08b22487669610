"""The setting shared-cache: its permission exists only with the setting, and is what functions need to share lists."""

from datetime import timedelta

import pytest

from infra.iam.cache_grants import DECIDING_FUNCTIONS
from infra.storage import LIST_PREFIX
from shared.store.shared_cache import list_index
from shared.take.kubernetes import informer_cache, paging, shared_cache
from sim.authorization.template_policies import Template, parse_function_policies
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool


@pytest.fixture(scope="module", name="shared_template")
def synthesize_shared_template() -> Template:
    return synthesize_template(settings=ACTIVE_SETTINGS | {"shared-cache": "on"})


@pytest.fixture
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_cache, "MIN_CACHED_LIST_BYTES", 0)
    monkeypatch.setattr(shared_cache, "MIN_STORED_LIST_BYTES", 0)
    monkeypatch.setattr(paging, "MAX_OBJECTS_PER_PAGE", 2)


def list_functions_with_permission(template: Template, action: str) -> set[str]:
    return {
        function
        for function, policy in parse_function_policies(template).items()
        for statement in policy
        if action in statement.actions and any(f"/{LIST_PREFIX}" in resource for resource in statement.resources)
    }


@pytest.mark.parametrize("action", ["s3:GetObject", "s3:PutObject"])
def test_permission_on_stored_lists_exists_only_with_the_setting(shared_template: Template, action: str) -> None:
    assert list_functions_with_permission(synthesize_template(), action) == set()
    assert list_functions_with_permission(shared_template, action) == DECIDING_FUNCTIONS


def test_bucket_prefix_is_the_one_that_functions_use() -> None:
    assert LIST_PREFIX == list_index.LIST_PREFIX


@pytest.mark.usefixtures("_everything_is_large")
def test_functions_store_large_lists_with_the_permissions_of_their_roles(shared_template: Template) -> None:
    world = World(template=dict(shared_template))
    world.apply([make_node_class(), make_node_pool(), make_deployment(5)])
    world.run(timedelta(minutes=4))
    assert {pod["status"]["phase"] for pod in world.cluster.api.list("pods")} == {"Running"}
    index = list_index.read_list_index(world.table)
    assert "pods" in index.lists
    assert index.lists["pods"].key in world.bucket.list_keys(LIST_PREFIX)
