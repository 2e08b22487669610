"""Selection of clusters with `-c cluster=NAME`, and their settings files.

Settings on the command line are refused: the next deployment would not have them.
"""

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from infra.settings.errors import InvalidSettingsError, add_prefix, list_errors
from infra.settings.files.reading import parse_settings
from infra.settings.load import suggest_setting
from infra.settings.settings import SETTING_NAMES, StackOptions
from infra.settings.validation import CLUSTER_NAME_PATTERN, CLUSTER_NAME_RULE
from shared.settings_text import split_list

ROOT: Final = Path(__file__).resolve().parents[3]
CLUSTERS_FOLDER: Final = Path("clusters")
"""In the current folder: `make` and `cdk` run in the checkout."""
CLUSTER_KEY: Final = "cluster"
FOLDER_KEY: Final = "clusters-folder"
"""Context key of the folder with the settings files; by default `clusters` in this repository."""
EXAMPLE_NAME: Final = "example"
PREFIX: Final = "joiner:"
"""Prefix of the settings in the context of version 0.1.0."""
SUFFIX: Final = ".yaml"


def select_clusters(context: Mapping[str, object], committed_keys: Collection[str] = ()) -> tuple[StackOptions, ...]:
    """Return the settings of each cluster that *context* selects, from its file.

    *committed_keys* are the context keys of cdk.json.

    Raises:
        ValueError: no cluster is selected, *context* has settings, or a file is missing or invalid.
    """
    names = split_list(str(context.get(CLUSTER_KEY, "")))
    _check_context(context, committed_keys, names[0] if names else "NAME")
    folder = Path(str(context.get(FOLDER_KEY) or CLUSTERS_FOLDER))
    if not names:
        raise ValueError(_describe_missing_selection(folder))
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"-c {CLUSTER_KEY}={','.join(names)}: {name} is there twice")
    clusters = _load_clusters(names, folder)
    cluster_names = [options.cluster for options in clusters]
    for name in cluster_names:
        if cluster_names.count(name) > 1:
            raise ValueError(
                f"two of the selected files are for the cluster {name}: deploy one of them after the other"
            )
    return tuple(clusters)


def _load_clusters(names: Iterable[str], folder: Path) -> list[StackOptions]:
    clusters: list[StackOptions] = []
    errors: list[str] = []
    for name in names:
        try:
            clusters.append(load_cluster(name, folder))
        except ValueError as error:
            errors.extend(list_errors(error))
    if errors:
        raise InvalidSettingsError(errors)
    return clusters


def load_cluster(name: str, folder: Path = CLUSTERS_FOLDER) -> StackOptions:
    """Return the settings in the file of the cluster *name*.

    Raises:
        ValueError: there is no such file, or it is invalid.
    """
    path = get_settings_path(name, folder)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError(_describe_missing_file(name, folder)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{format_path(path)} cannot be read: {error}") from None
    try:
        return parse_settings(text, name)
    except ValueError as error:
        raise add_prefix(error, format_path(path)) from None


def get_settings_path(name: str, folder: Path = CLUSTERS_FOLDER) -> Path:
    """Return the path of the settings file of the cluster *name*.

    Raises:
        ValueError: *name* cannot be the name of a cluster.
    """
    if not CLUSTER_NAME_PATTERN.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a cluster: must be {CLUSTER_NAME_RULE}")
    return folder / f"{name}{SUFFIX}"


def list_clusters(folder: Path) -> list[str]:
    """Return the names of the settings files in *folder*, without the example, sorted."""
    return sorted(path.stem for path in folder.glob(f"*{SUFFIX}") if path.stem != EXAMPLE_NAME)


def format_path(path: Path) -> str:
    """Return *path* as a user of this repository writes it."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def _check_context(context: Mapping[str, object], committed_keys: Collection[str], cluster: str) -> None:
    for key in sorted(context):
        name = key.removeprefix(PREFIX)
        if name == key and (name == CLUSTER_KEY or name not in SETTING_NAMES):
            continue
        if key in committed_keys:
            raise ValueError(
                f"cdk.json has {key}, but settings are in a file for each cluster: run `make settings "
                f"CLUSTER={cluster} FROM=cdk.json`, and then `git checkout cdk.json`"
            )
        if name == CLUSTER_KEY:
            raise ValueError(f"-c {key}={context[key]}: write -c {CLUSTER_KEY}={context[key]}")
        if name not in SETTING_NAMES:
            raise ValueError(f"-c {key}: {name} is not a setting: {suggest_setting(name)}")
        raise ValueError(
            f"-c {key}={context[key]}: the command line has no settings, because the next deployment would not have "
            f"them; to fix: run `make settings CLUSTER={cluster} SET='{name}={context[key]}'`, or write "
            f"`{name}: {context[key]}` into clusters/{cluster}{SUFFIX}"
        )


def _describe_missing_selection(folder: Path) -> str:
    if names := list_clusters(folder):
        return (
            f"no cluster is selected: add `-c {CLUSTER_KEY}=NAME`, for example `npx cdk deploy -c "
            f"{CLUSTER_KEY}={names[0]}`; {format_path(folder)} has settings of {', '.join(names)}"
        )
    return (
        "no cluster is selected: run `make settings CLUSTER=NAME`, which writes the settings file of the EKS cluster "
        f"NAME, and then `npx cdk deploy -c {CLUSTER_KEY}=NAME`"
    )


def _describe_missing_file(name: str, folder: Path) -> str:
    names = list_clusters(folder)
    close_names = get_close_matches(name, names, 1)
    existing = f"{format_path(folder)} has settings of {', '.join(names)}" if names else "there are no settings files"
    suggestion = f"did you mean {close_names[0]}? " if close_names else ""
    return (
        f"{format_path(folder / (name + SUFFIX))} does not exist: {suggestion}{existing}; to create it, run "
        f"`make settings CLUSTER={name}`"
    )
