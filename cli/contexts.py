"""Kubeconfigs: which files count, and which contexts they name."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from kubernetes.config import ConfigException
from kubernetes.config.kube_config import ConfigNode, KubeConfigMerger
from yaml import YAMLError

from cli.files import InputError

T = TypeVar("T")

DEFAULT: Final = "~/.kube/config"


def contexts(kubeconfig: str) -> list[str]:
    """Answer the names of the contexts that a kubeconfig has.

    Raises:
        InputError: there is no such kubeconfig, or it cannot be read.
    """
    return _read(kubeconfig, lambda merged: [str(one["name"]) for one in merged["contexts"]]) or []


def current(kubeconfig: str) -> str:
    """Answer the name of the context that counts where none is named; "" if there is none.

    Raises:
        InputError: there is no such kubeconfig, or it cannot be read.
    """
    return _read(kubeconfig, lambda merged: str(merged.safe_get("current-context") or "")) or ""


def _read(kubeconfig: str, part: Callable[[ConfigNode], T]) -> T | None:
    """Answer *part* of what the files say together, None if they are empty.

    Raises:
        InputError: there is no such kubeconfig, or it cannot be read.
    """
    where, files = files_of(kubeconfig)
    try:
        merged = KubeConfigMerger(os.pathsep.join(map(str, files))).config
        return None if merged is None else part(merged)
    except (ConfigException, OSError, ValueError, TypeError, YAMLError) as error:
        raise InputError(f"{where}: {' '.join(str(error).split())}: see if kubectl can read it") from None


def files_of(kubeconfig: str) -> tuple[str, list[Path]]:
    """Answer what is called *kubeconfig*, and its files.

    Raises:
        InputError: none of them exists.
    """
    where = kubeconfig or os.environ.get("KUBECONFIG") or DEFAULT
    files = [Path(one).expanduser() for one in where.split(os.pathsep) if one]
    if not any(one.exists() for one in files):
        raise InputError(f"{where}: no such kubeconfig: name one with --kubeconfig, or `aws eks update-kubeconfig`")
    return where, files
