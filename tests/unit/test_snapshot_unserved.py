"""Kinds that are not served: which of the two reasons it is, and what helps."""

from typing import cast

import msgspec
import pytest

from shared.errors import Gone, Throttled
from shared.ports import Kube
from shared.snapshot.kinds import LISTINGS
from shared.snapshot.unserved import unserved

POOLS = next(one for one in LISTINGS if one.field == "node_pools")
GROUP = {"versions": [{"version": "v1"}, {"version": "v2"}, {"version": "v3"}]}


class Discovery:
    """What an API server says of its kinds."""

    def __init__(self, documents: dict[str, object]) -> None:
        """Hold *documents* by path."""
        self.documents = documents

    def read(self, path: str) -> bytes:
        if path not in self.documents:
            raise Gone(path)
        found = self.documents[path]
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, bytes) else msgspec.json.encode(found)


def words(documents: dict[str, object]) -> str:
    problem = unserved(cast("Kube", Discovery(documents)), POOLS)
    assert (problem.kind, problem.name) == ("CustomResourceDefinition", "nodepools.karpenter.sh")
    assert problem.message.endswith("until then nothing is concluded from its absence")
    return problem.message


def serving(*names: str) -> dict[str, object]:
    return {"resources": [{"name": name} for name in names]}


@pytest.mark.parametrize(
    "documents",
    [
        {},
        {"/apis/karpenter.sh": GROUP},
        {"/apis/karpenter.sh": GROUP, "/apis/karpenter.sh/v1": serving("nodepools")},
        {"/apis/karpenter.sh": GROUP, "/apis/karpenter.sh/v2": serving("nodeclaims", "nodepools/status")},
        {"/apis/karpenter.sh": GROUP, "/apis/karpenter.sh/v2": b"{"},
        {"/apis/karpenter.sh": b"[]"},
        {"/apis/karpenter.sh": Throttled("later")},
    ],
)
def test_one_that_no_version_has_is_not_installed(documents: dict[str, object]) -> None:
    assert words(documents).startswith("nodepools.karpenter.sh is not installed: apply the CustomResourceDefinitions;")


def test_one_in_other_versions_is_told_with_them() -> None:
    documents: dict[str, object] = {"/apis/karpenter.sh": GROUP}
    documents |= {f"/apis/karpenter.sh/{version}": serving("nodepools") for version in ("v2", "v3")}
    told = words(documents)
    assert "is served as v2, v3, not as v1, which Joiner reads: serve v1 too" in told
    assert "or update Joiner" in told
