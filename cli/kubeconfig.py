"""A cluster as `kubectl` reaches it: a kubeconfig, its contexts, certificates, tokens and exec plugins. Reads only."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from email.utils import parsedate_to_datetime
from typing import Any, Final

import msgspec
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger
from urllib3 import BaseHTTPResponse, PoolManager, Timeout
from urllib3.exceptions import HTTPError
from yaml import YAMLError

from cli.contexts import contexts, files_of
from cli.files import InputError
from cli.remedies import SIGN_IN, is_unsigned, of_answer
from shared.errors import InvariantViolated, Unreachable
from shared.kube.answers import document, fault_from, is_success
from shared.kube.paths import list_path
from shared.kube.proxies import proxy_headers
from shared.ports import Changes

_JSON: Final = "application/json"
_NAMES: Final = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{_JSON}"
_LISTED: Final = "`kubectl config get-contexts` shows what there is"
_INSTALL: Final = "install what users[].user.exec names (for EKS the AWS CLI), or mend $PATH"
_TIMEOUT: Final = Timeout(connect=10, read=60)


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, and what the kubeconfig calls it."""

    kube: "ReadOnlyKube"
    context: str
    cluster: str
    """Name of the entry; EKS writes the ARN there."""
    server: str


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _WithName(msgspec.Struct, frozen=True):
    metadata: _Named = _Named()


class _Names(msgspec.Struct, frozen=True):
    items: tuple[_WithName, ...] = ()


class ReadOnlyKube:
    """`shared.ports.Kube` of whatever a kubeconfig describes, as far as it reads; the rest is refused here."""

    def __init__(self, configuration: Configuration) -> None:
        """Open no connection yet."""
        self.configuration = configuration
        self.answered_at: datetime | None = None
        """The API server's clock at its last answer, to the second."""
        self._pool: PoolManager = ApiClient(configuration).rest_client.pool_manager

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
        page = list_path(
            path,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_token=continue_token,
        )
        return self.read(page)

    def read(self, path: str) -> bytes:
        """GET."""
        return self._call("GET", path)

    def names(self, path: str, seconds: float) -> tuple[str, ...]:
        """GET the names of the first page of a collection, and nothing else of it, within so many *seconds* or not.

        Raises:
            Fault: it was not answered so soon.
        """
        timeout = Timeout(total=seconds)
        page = msgspec.json.decode(self._call("GET", f"{path}?limit=500", accept=_NAMES, timeout=timeout), type=_Names)
        return tuple(one.metadata.name for one in page.items)

    def _call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = _JSON,
        accept: str = _JSON,
        timeout: Timeout = _TIMEOUT,
    ) -> bytes:
        call = f"{method} {path}"
        headers = {"Accept": accept} | ({} if body is None else {"Content-Type": content_type})
        for setting in self.configuration.auth_settings().values():
            headers[setting["key"]] = setting["value"]
        try:
            response: BaseHTTPResponse = self._pool.request(
                method, self.configuration.host + path, body=body, headers=headers, timeout=timeout, retries=False
            )
        except (HTTPError, OSError) as error:
            raise Unreachable(f"{call}: {error}") from error
        if not is_success(response.status):
            raise fault_from(call, response.status, response.data, response.headers, of_answer)
        with suppress(KeyError, TypeError, ValueError):
            self.answered_at = parsedate_to_datetime(response.headers["Date"]).astimezone(UTC)
        return document(call, response.data)

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], Changes]:
        """Refuse: a plan looks once."""
        raise InvariantViolated(f"WATCH {path} since {since} {field_selector}: a plan only lists")

    def create(self, path: str, body: bytes) -> bytes:
        """Refuse."""
        raise InvariantViolated(f"POST {path}, {len(body)} bytes: a plan writes nothing")

    def patch(self, path: str, body: bytes) -> bytes:
        """Refuse."""
        raise InvariantViolated(f"PATCH {path}, {len(body)} bytes: a plan writes nothing")

    def delete(self, path: str, body: bytes = b"") -> None:
        """Refuse."""
        raise InvariantViolated(f"DELETE {path}, {len(body)} bytes: a plan writes nothing")


def reach(kubeconfig: str, context: str) -> Reached:
    """Answer the cluster of *context* ("": the current one) in *kubeconfig* ("": $KUBECONFIG, else the usual place).

    An exec plugin is run, as kubectl would. The kubeconfig is not changed.

    Raises:
        InputError: there is no such context, or it gives no way in.
    """
    where, files = files_of(kubeconfig)
    said = f"{where}: context {context or '(the current one)'}"
    configuration = Configuration()
    try:
        with _complaints(said):
            loader = KubeConfigLoader(
                config_dict=KubeConfigMerger(os.pathsep.join(map(str, files))).config,
                active_context=context or None,
                config_base_path=None,
            )
            loader.load_and_set(configuration)
            if configuration.proxy:
                configuration.proxy_headers = proxy_headers(configuration.proxy)
    except ConfigException as error:
        words = str(error).removeprefix("Invalid kube-config file. ")
        meant = _meant(context, kubeconfig)
        raise InputError(f"{said}: {words.rstrip('.')}: {meant or _LISTED}") from None
    except (OSError, UnicodeDecodeError, ValueError, TypeError, YAMLError) as error:
        raise InputError(f"{said}: {' '.join(str(error).split())}: see if kubectl can read it") from None
    known: dict[str, Any] = loader.current_context
    return Reached(
        kube=ReadOnlyKube(configuration),
        context=str(known["name"]),
        cluster=str(known["context"]["cluster"]),
        server=str(configuration.host),
    )


def _meant(context: str, kubeconfig: str) -> str:
    """Answer which context may be meant; "" if none is like it, or the file cannot be read."""
    try:
        close = get_close_matches(context, contexts(kubeconfig), n=1) if context else []
    except (InputError, KeyError):
        return ""
    return f"did you mean {close[0]!r}?" if close else ""


@contextmanager
def _complaints(said: str) -> Iterator[None]:
    """Let what the client library only logs be an error: without its credentials everything would be refused later.

    Raises:
        InputError: it complained.
    """
    heard: list[str] = []

    class Hearing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    hearing, root = Hearing(logging.ERROR), logging.getLogger()
    root.addHandler(hearing)
    try:
        yield
    finally:
        root.removeHandler(hearing)
    if heard:
        words = " ".join("; ".join(heard).split())
        remedy = _INSTALL if "No such file" in words else "run the command of users[].user.exec by hand"
        remedy = SIGN_IN if is_unsigned(words) else remedy
        raise InputError(f"{said}: {words}: {remedy}")
