"""A cluster as `kubectl` reaches it, for the few commands that write."""

import os
from http import HTTPStatus
from typing import Final

import msgspec

from cli.kubeconfig import Reached, ReadOnlyKube
from shared.errors import Fault, Invalid
from shared.kube.paths import is_object

_MERGE: Final = "application/merge-patch+json"
_WHO: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW: Final = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'


class WritingKube(ReadOnlyKube):
    """`shared.ports.Kube` of whatever a kubeconfig describes, but for watching."""

    def create(self, path: str, body: bytes) -> bytes:
        """POST."""
        return self._call("POST", path, body)

    def patch(self, path: str, body: bytes) -> bytes:
        """PATCH, merging."""
        return self._call("PATCH", path, body, content_type=_MERGE)

    def delete(self, path: str, body: bytes = b"") -> None:
        """DELETE one object; a collection, which the API server would empty, is refused here."""
        if not is_object(path):
            raise Invalid(f"DELETE {path}: that is no object", HTTPStatus.METHOD_NOT_ALLOWED.phrase)
        self._call("DELETE", path, body or None)


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    user_info: _User = _User()


class _Reviewed(msgspec.Struct, frozen=True):
    status: _Status = _Status()


def writing(reached: Reached) -> WritingKube:
    """Answer a client of the same cluster that writes."""
    return WritingKube(reached.kube.configuration)


def whoami(kube: WritingKube) -> str:
    """Answer whom the API server takes us for; where it does not say, who we are on this machine. No spaces in it."""
    try:
        said = msgspec.json.decode(kube.create(_WHO, _REVIEW), type=_Reviewed).status.user_info.username
    except (Fault, msgspec.DecodeError):
        said = ""
    return "-".join((said or os.environ.get("USER", "") or "somebody").split())
