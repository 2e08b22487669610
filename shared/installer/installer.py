"""Execution of an installation: observe, apply the plan, and repeat until no step is left or the time is over."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, TypeVar, assert_never

import msgspec
from urllib3 import Retry

from shared.errors import Conflict, Forbidden, NotFound, Throttled, Unreachable
from shared.installer.manifests import (
    MANIFEST_PATHS,
    Manifest,
    build_collection_path,
    build_manifest_path,
    format_kind_and_name,
    get_manifest_name,
    is_being_deleted,
    is_managed_by_joiner,
)
from shared.installer.own_nodes import filter_own_nodes, list_pool_names
from shared.installer.plan import (
    CreateManifest,
    DeleteManifest,
    InstalledState,
    InstallPlan,
    InstallStep,
    PatchManifest,
    plan_install,
    plan_removal,
)
from shared.model.core.labels import NODEPOOL
from shared.model.karpenter.other_providers import has_own_node_class
from shared.ports.kubernetes import Kube
from shared.wire.paths import COLLECTION_PATHS, CRD_KIND

SHARED_DEFINITIONS: Final = {"NodeClaim": "nodeclaims.karpenter.sh", "NodePool": "nodepools.karpenter.sh"}
"""The CRDs, by kind, in which other providers have objects, too."""
LEASES_PATH: Final = "/apis/coordination.k8s.io/v1/leases"
KARPENTER_LEASE_NAME: Final = "karpenter-leader-election"
LEASE_RENEWAL_TIMEOUT: Final = timedelta(minutes=2)
"""Maximum age of a lease's renewal for its holder to count as running; the holder renews it every few seconds."""
RETRY_POLICY: Final = Retry(total=None, backoff_factor=1, backoff_max=30, backoff_jitter=2)
"""Its delays in seconds double from 2 up to 30, each plus a random part of up to 2, so that retries do not coincide."""
Result = TypeVar("Result")
RETRYABLE_FAULTS: Final = (Conflict, Forbidden, NotFound, Throttled, Unreachable)
"""Faults that are retried. Forbidden is one: a new access entry takes effect some seconds after its creation."""


class InstallRefused(Exception):
    """The installation would not work, so nothing was done; the message has the reason."""


class Installer(msgspec.Struct, frozen=True, kw_only=True):
    """One installation into the cluster of *kube*, limited by *deadline*."""

    kube: Kube
    manifests: tuple[Manifest, ...]
    clock: Callable[[], datetime]
    wait: Callable[[timedelta], None]
    deadline: datetime

    def install(self) -> tuple[str, ...]:
        """Install or upgrade; return what was done and what the user should know.

        Raises:
            InstallRefused: CRDs managed by others cannot be used; nothing was done.
            Fault: the API server refused or did not respond until the deadline.
        """
        messages = self._reconcile(
            lambda: plan_install(self.manifests, InstalledState(live=self._read_settled_objects()))
        )
        self.retry_until_deadline(self.check_definitions_served)
        return messages

    def remove(self, *, purge: bool) -> tuple[str, ...]:
        """Remove what was installed, and our finalizers; CRDs that have objects are removed only if *purge*.

        Raises:
            Fault: the API server refused or did not respond until the deadline.
        """
        return self._reconcile(lambda: plan_removal(self.manifests, self._read_installed_state(), purge=purge))

    def _reconcile(self, build_plan: Callable[[], InstallPlan]) -> tuple[str, ...]:
        """Apply plans until a plan is empty or repeats the previous one; return the messages without duplicates."""
        messages: dict[str, None] = {}
        previous_plan: InstallPlan | None = None
        while True:
            plan = self.retry_until_deadline(lambda: self.apply_plan(build_plan()))
            messages |= dict.fromkeys(plan.messages)
            if not plan.steps or (previous_plan is not None and plan.steps == previous_plan.steps):
                return tuple(messages)
            previous_plan = plan

    def retry_until_deadline(self, act: Callable[[], Result]) -> Result:
        """Call *act* until it succeeds, and return its result. The delays grow; the last call is at the deadline.

        Raises:
            Fault: it did not succeed until the deadline.
        """
        delays = iterate_retry_delays()
        while True:
            try:
                return act()
            except RETRYABLE_FAULTS:
                remaining = self.deadline - self.clock()
                if remaining <= timedelta():
                    raise
                self.wait(min(next(delays), remaining))

    def apply_plan(self, plan: InstallPlan) -> InstallPlan:
        """Apply the steps of *plan*, and return it.

        Raises:
            InstallRefused: the plan has refusals; nothing was done.
            Fault: a step failed.
        """
        if plan.refusals:
            raise InstallRefused("; ".join(plan.refusals))
        for step in plan.steps:
            self._apply_step(step)
        return plan

    def _apply_step(self, step: InstallStep) -> None:
        match step:
            case CreateManifest():
                self.kube.create(step.path, msgspec.json.encode(step.body))
            case PatchManifest():
                with suppress(NotFound):
                    self.kube.patch(step.path, msgspec.json.encode(step.body))
            case DeleteManifest():
                options = {"preconditions": {"uid": step.uid}} if step.uid else {}
                with suppress(NotFound):
                    self.kube.delete(step.path, msgspec.json.encode(options))
            case _:
                assert_never(step)

    def read_live_objects(self) -> dict[str, Manifest]:
        """Return the manifests that exist in the cluster, as they are there, by path."""
        objects = (
            (build_manifest_path(manifest), self._read_object(build_manifest_path(manifest)))
            for manifest in self.manifests
        )
        return {path: item for path, item in objects if item is not None}

    def _read_settled_objects(self) -> dict[str, Manifest]:
        """Return the live objects by path.

        Raises:
            Conflict: an object of an earlier installation is still being deleted.
        """
        live = self.read_live_objects()
        going = [format_kind_and_name(item) for item in live.values() if is_being_deleted(item)]
        if going:
            raise Conflict(f"{', '.join(going)} of an earlier installation is still being deleted")
        return live

    def _read_installed_state(self) -> InstalledState:
        live = self.read_live_objects()
        definitions = [
            definition
            for definition in self.manifests
            if definition["kind"] == CRD_KIND and is_installed(live.get(build_manifest_path(definition)))
        ]
        counts = {
            get_manifest_name(definition): sum(1 for _ in self.list_objects(build_collection_path(definition)))
            for definition in definitions
        }
        return InstalledState(
            live=live,
            object_counts=counts,
            foreign_counts={name: count for name, count in self._count_foreign_objects() if name in counts},
            finalized_objects=self._list_finalized_objects(),
            is_karpenter_running=self._is_karpenter_running(),
        )

    def _list_finalized_objects(self) -> tuple[tuple[str, Manifest], ...]:
        """Return everything of Joiner that can have our finalizers; other providers use the same finalizers."""
        claims = tuple(self.list_own_objects(COLLECTION_PATHS["NodeClaim"]))
        node_pools = (pool for _, pool in self.list_own_objects(COLLECTION_PATHS["NodePool"]))
        pool_names = list_pool_names(node_pools, (claim for _, claim in claims))
        nodes = filter_own_nodes(self.list_objects(COLLECTION_PATHS["Node"], NODEPOOL), pool_names)
        return (*claims, *self.list_objects(COLLECTION_PATHS["EC2NodeClass"]), *nodes)

    def _count_foreign_objects(self) -> Iterator[tuple[str, int]]:
        """Yield the name of each CRD that other providers share, and the number of their objects."""
        for kind, name in SHARED_DEFINITIONS.items():
            objects = self.list_objects(COLLECTION_PATHS[kind])
            yield name, sum(1 for _, manifest in objects if not has_own_node_class(manifest))

    def _is_karpenter_running(self) -> bool:
        """Return whether a Karpenter controller holds its lease, in any namespace."""
        page = msgspec.json.decode(self.kube.list(LEASES_PATH, field_selector=f"metadata.name={KARPENTER_LEASE_NAME}"))
        renewals = ((lease.get("spec") or {}).get("renewTime") for lease in page["items"])
        return any(
            self.clock() - datetime.fromisoformat(renewal) < LEASE_RENEWAL_TIMEOUT for renewal in renewals if renewal
        )

    def _read_object(self, path: str) -> Manifest | None:
        try:
            manifest: Manifest = msgspec.json.decode(self.kube.read(path))
        except NotFound:
            return None
        return manifest

    def list_own_objects(self, collection: str) -> Iterator[tuple[str, Manifest]]:
        """Yield path and object of everything in *collection*, NodePools or NodeClaims, that is Joiner's.

        Raises:
            Unreachable: the kind is defined but not served; that is not an empty collection.
        """
        return ((path, manifest) for path, manifest in self.list_objects(collection) if has_own_node_class(manifest))

    def list_objects(self, collection: str, label: str = "") -> Iterator[tuple[str, Manifest]]:
        """Yield path and object of everything in *collection*; nothing if its kind is not defined.

        Raises:
            Unreachable: the kind is defined but not served; that is not an empty collection.
        """
        token = ""
        while True:
            try:
                page = msgspec.json.decode(self.kube.list(collection, label_selector=label, continue_token=token))
            except NotFound as fault:
                *_, group, _, plural = collection.split("/")
                if self._read_object(f"{MANIFEST_PATHS[CRD_KIND]}/{plural}.{group}") is not None:
                    raise Unreachable(f"{collection} is defined but not served") from fault
                return
            for item in page["items"]:
                yield f"{collection}/{get_manifest_name(item)}", item
            token = page["metadata"].get("continue", "")
            if not token:
                return

    def check_definitions_served(self) -> None:
        """Check that all our CRDs are served.

        Raises:
            Unreachable: a CRD is not served yet.
        """
        live = self.read_live_objects()
        for manifest in self.manifests:
            if manifest["kind"] == CRD_KIND and is_installed(live.get(build_manifest_path(manifest))):
                try:
                    self.kube.list(build_collection_path(manifest), limit=1)
                except NotFound as fault:
                    raise Unreachable(f"{get_manifest_name(manifest)} is not served yet") from fault


def iterate_retry_delays() -> Iterator[timedelta]:
    """Yield the delays of `RETRY_POLICY`, without an end."""
    attempts = RETRY_POLICY.increment()  # the first retry of urllib3 has no delay
    while True:
        attempts = attempts.increment()
        yield timedelta(seconds=attempts.get_backoff_time())


def is_installed(live: Manifest | None) -> bool:
    """Return whether *live* exists, is managed by Joiner, and is not being deleted."""
    return live is not None and is_managed_by_joiner(live) and not is_being_deleted(live)
