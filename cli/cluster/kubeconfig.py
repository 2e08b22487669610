"""Access to a cluster as with `kubectl`: kubeconfig, contexts, certificates, tokens and exec plugins. Read-only."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from email.utils import parsedate_to_datetime
from typing import Any, Final

import msgspec
from kubernetes.client.configuration import Configuration
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger
from urllib3.exceptions import HTTPError
from yaml import YAMLError

from cli.cluster.contexts import list_contexts, list_kubeconfig_files
from cli.cluster.fixes import SIGN_IN_HINT, is_credential_error, suggest_response_fix
from cli.terminal.errors import InputError
from shared.errors import InvariantViolated, Unreachable
from shared.kubernetes.errors import build_fault, check_json_document, is_success
from shared.kubernetes.proxy import complete_proxy_settings
from shared.kubernetes.raw_api_client import JSON_CONTENT_TYPE, RawApiClient
from shared.ports.kubernetes import WatchEvents
from shared.wire.paths import build_list_path

_NAME_LIST_TYPE: Final = f"{JSON_CONTENT_TYPE};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON_CONTENT_TYPE}"
_LIST_CONTEXTS_HINT: Final = "`kubectl config get-contexts` lists the contexts"
_INSTALL_PLUGIN_HINT: Final = "install the command of users[].user.exec (for EKS, the AWS CLI), or correct $PATH"
_REQUEST_TIMEOUT_S: Final = (10.0, 60.0)
"""For connecting, and for each pause while reading."""


class ClusterConnection(msgspec.Struct, frozen=True, kw_only=True):
    """A connection to a cluster, and the cluster's names in the kubeconfig."""

    kube: "ReadOnlyKube"
    context: str
    cluster: str
    """Name of the kubeconfig's cluster entry; EKS writes the ARN there."""
    server: str


class _NameMetadata(msgspec.Struct, frozen=True):
    name: str = ""


class _NamedObject(msgspec.Struct, frozen=True):
    metadata: _NameMetadata = _NameMetadata()


class _NameList(msgspec.Struct, frozen=True):
    items: tuple[_NamedObject, ...] = ()


class ReadOnlyKube:
    """`shared.ports.kubernetes.Kube` for the cluster of a kubeconfig, reads only; writes and watches are rejected."""

    def __init__(self, configuration: Configuration) -> None:
        """Open no connection yet."""
        self.configuration = configuration
        self.answered_at: datetime | None = None
        """The API server's clock at its last response, to the second."""
        self._api = RawApiClient(configuration)

    def list(
        self,
        path: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        continue_token: str = "",
    ) -> bytes:
        """GET one page of a collection."""
        page = build_list_path(
            path,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_token=continue_token,
        )
        return self.read(page)

    def read(self, path: str) -> bytes:
        """GET one object."""
        return self._call("GET", path)

    def list_names(self, path: str, seconds: float) -> tuple[str, ...]:
        """GET only the names on the first page of a collection, within the time limit *seconds*.

        Raises:
            Fault: there was no response within the time limit.
        """
        document = self._call("GET", f"{path}?limit=500", accept=_NAME_LIST_TYPE, timeout=seconds)
        page = msgspec.json.decode(document, type=_NameList)
        return tuple(named_object.metadata.name for named_object in page.items)

    def _call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = JSON_CONTENT_TYPE,
        accept: str = JSON_CONTENT_TYPE,
        timeout: tuple[float, float] | float = _REQUEST_TIMEOUT_S,
    ) -> bytes:
        call = f"{method} {path}"
        try:
            response = self._api.request(
                method, path, timeout=timeout, body=body, content_type=content_type, accept=accept
            )
            document = response.data
        except (HTTPError, OSError) as error:
            raise Unreachable(f"{call}: {error}") from error
        if not is_success(response.status):
            raise build_fault(call, response.status, document, response.headers, suggest_response_fix)
        with suppress(KeyError, TypeError, ValueError):
            self.answered_at = parsedate_to_datetime(response.headers["Date"]).astimezone(UTC)
        return check_json_document(call, document)

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], WatchEvents]:
        """Reject: a plan reads only once."""
        raise InvariantViolated(f"WATCH {path} since {since} {field_selector}: a plan only lists")

    def create(self, path: str, body: bytes) -> bytes:
        """Reject."""
        raise InvariantViolated(f"POST {path}, {len(body)} bytes: a plan writes nothing")

    def patch(self, path: str, body: bytes) -> bytes:
        """Reject."""
        raise InvariantViolated(f"PATCH {path}, {len(body)} bytes: a plan writes nothing")

    def delete(self, path: str, body: bytes = b"") -> None:
        """Reject."""
        raise InvariantViolated(f"DELETE {path}, {len(body)} bytes: a plan writes nothing")


def connect_to_cluster(kubeconfig: str, context: str) -> ClusterConnection:
    """Return a connection to *context* ("": the current one) in *kubeconfig* ("": $KUBECONFIG or the default path).

    Exec plugins run, as with kubectl. The kubeconfig is not changed.

    Raises:
        InputError: there is no such context, or it cannot be used.
    """
    source, files = list_kubeconfig_files(kubeconfig)
    context_text = f"{source}: context {context or '(current)'}"
    configuration = Configuration(retries=False)
    try:
        with _raise_logged_errors(context_text):
            loader = KubeConfigLoader(
                config_dict=KubeConfigMerger(os.pathsep.join(map(str, files))).config,
                active_context=context or None,
                config_base_path=None,
            )
            loader.load_and_set(configuration)
            complete_proxy_settings(configuration)
    except ConfigException as error:
        words = str(error).removeprefix("Invalid kube-config file. ")
        suggestion = _suggest_context(context, kubeconfig)
        raise InputError(f"{context_text}: {words.rstrip('.')}: {suggestion or _LIST_CONTEXTS_HINT}") from None
    except (OSError, UnicodeDecodeError, ValueError, TypeError, YAMLError) as error:
        raise InputError(f"{context_text}: {' '.join(str(error).split())}: check the file with kubectl") from None
    context_entry: dict[str, Any] = loader.current_context
    return ClusterConnection(
        kube=ReadOnlyKube(configuration),
        context=str(context_entry["name"]),
        cluster=str(context_entry["context"]["cluster"]),
        server=str(configuration.host),
    )


def _suggest_context(context: str, kubeconfig: str) -> str:
    """Return a hint with the most similar context; "" if no context is similar or the file cannot be read."""
    try:
        close_names = get_close_matches(context, list_contexts(kubeconfig), n=1) if context else []
    except (InputError, KeyError):
        return ""
    return f"did you mean {close_names[0]!r}?" if close_names else ""


@contextmanager
def _raise_logged_errors(context_text: str) -> Iterator[None]:
    """Raise errors that the client library only logs: without credentials, later requests would be rejected.

    Raises:
        InputError: the library logged an error.
    """
    messages: list[str] = []

    class Hearing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    collector, root = Hearing(logging.ERROR), logging.getLogger()
    root.addHandler(collector)
    try:
        yield
    finally:
        root.removeHandler(collector)
    if messages:
        words = " ".join("; ".join(messages).split())
        fix = _INSTALL_PLUGIN_HINT if "No such file" in words else "run the command of users[].user.exec yourself"
        fix = SIGN_IN_HINT if is_credential_error(words) else fix
        raise InputError(f"{context_text}: {words}: {fix}")
