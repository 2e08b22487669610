"""A Kubernetes client for the commands that write, configured as `kubectl`."""

import os
from http import HTTPStatus
from typing import Final

import msgspec

from cli.cluster.kubeconfig import ClusterConnection, ReadOnlyKube
from shared.errors import Fault, Invalid
from shared.wire.paths import is_object

_MERGE_PATCH_TYPE: Final = "application/merge-patch+json"
_REVIEW_PATH: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW_BODY: Final = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'


class ReadWriteKube(ReadOnlyKube):
    """An implementation of `shared.ports.kubernetes.Kube` for a kubeconfig, without watches."""

    def create(self, path: str, body: bytes) -> bytes:
        """Send a POST request."""
        return self._call("POST", path, body)

    def patch(self, path: str, body: bytes) -> bytes:
        """Send a PATCH request with a merge patch."""
        return self._call("PATCH", path, body, content_type=_MERGE_PATCH_TYPE)

    def delete(self, path: str, body: bytes = b"") -> None:
        """Send a DELETE request for one object; collections, which the API server would empty, are refused."""
        if not is_object(path):
            raise Invalid(f"DELETE {path}: the path is not an object", HTTPStatus.METHOD_NOT_ALLOWED.phrase)
        self._call("DELETE", path, body or None)


class _UserInfoJson(msgspec.Struct, frozen=True):
    username: str = ""


class _ReviewStatusJson(msgspec.Struct, frozen=True, rename="camel"):
    user_info: _UserInfoJson = _UserInfoJson()


class _SelfSubjectReviewJson(msgspec.Struct, frozen=True):
    status: _ReviewStatusJson = _ReviewStatusJson()


def build_write_client(reached: ClusterConnection) -> ReadWriteKube:
    """Return a client of the same cluster that can write."""
    return ReadWriteKube(reached.kube.configuration)


def get_username(kube: ReadWriteKube) -> str:
    """Return the username that the API server sees, by default the local username; spaces are replaced."""
    try:
        username = msgspec.json.decode(
            kube.create(_REVIEW_PATH, _REVIEW_BODY), type=_SelfSubjectReviewJson
        ).status.user_info.username
    except (Fault, msgspec.DecodeError):
        username = ""
    return "-".join((username or os.environ.get("USER", "") or "somebody").split())
