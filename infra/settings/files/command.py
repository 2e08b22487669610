"""`make settings`: create the settings file of a cluster, or change settings in it."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from infra.settings.errors import add_prefix, list_errors
from infra.settings.files.changes import change_settings, render_settings_file, render_value
from infra.settings.files.reading import parse_settings
from infra.settings.files.selection import CLUSTERS_FOLDER, PREFIX, format_path, get_settings_path
from infra.settings.load import check_setting_names, load_options
from infra.settings.settings import StackOptions, format_setting_name


def read_old_settings(path: Path) -> dict[str, object]:
    """Return the settings in a cdk.json of version 0.1.0 that differ from today's defaults, without the cluster.

    Raises:
        ValueError: the file cannot be read, or has a setting that does not exist now, or an invalid value.
    """
    try:
        context = msgspec.json.decode(path.read_bytes(), type=dict[str, object]).get("context")
    except (OSError, msgspec.DecodeError) as error:
        raise ValueError(f"{path} is not a cdk.json: {error}") from None
    values = {
        key.removeprefix(PREFIX): value
        for key, value in (context.items() if isinstance(context, dict) else ())
        if key.startswith(PREFIX) and key != f"{PREFIX}cluster"
    }
    defaults = msgspec.structs.asdict(StackOptions())
    try:
        loaded = msgspec.structs.asdict(load_options({"cluster": path.stem.replace(".", "-"), **values}))
    except ValueError as error:
        raise add_prefix(error, str(path)) from None
    changed = {format_setting_name(field) for field, value in loaded.items() if value != defaults[field]}
    return {name: value for name, value in values.items() if name in changed}


def parse_assignments(items: Sequence[str]) -> dict[str, object]:
    """Return the values of ``NAME=VALUE`` words by setting; a name can have the prefix of version 0.1.0.

    Raises:
        ValueError: a word is not like ``NAME=VALUE``.
    """
    values: dict[str, object] = {}
    for item in items:
        name, equals, value = item.removeprefix(PREFIX).partition("=")
        if not equals:
            raise ValueError(f"{item!r} is not like NAME=VALUE")
        values[name] = value
    check_setting_names(values)
    return values


def update_file(path: Path, values: dict[str, object]) -> bool:
    """Create the settings file at *path* if it does not exist, and set *values*; return whether it was created.

    Raises:
        ValueError: a value is invalid; the file is unchanged.
    """
    is_new = not path.exists()
    old_text = render_settings_file() if is_new else path.read_text(encoding="utf-8")
    try:
        text = change_settings(old_text, values)
        parse_settings(text, path.stem)
    except ValueError as error:
        raise add_prefix(error, format_path(path)) from None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return is_new


def main(arguments: Sequence[str] | None = None) -> int:
    """Create or change a settings file; return 2 if a setting is invalid."""
    parser = argparse.ArgumentParser(prog="make settings", description="Create or change the settings of a cluster.")
    parser.add_argument("cluster", metavar="CLUSTER", help="name of the EKS cluster")
    parser.add_argument("settings", nargs="*", metavar="SETTING=VALUE")
    parser.add_argument(
        "--from", dest="old", type=Path, metavar="FILE", help="a cdk.json with settings, of version 0.1.0"
    )
    parser.add_argument("--folder", type=Path, default=CLUSTERS_FOLDER, help="folder of the settings files")
    options = parser.parse_intermixed_args(arguments)
    if not options.cluster:
        sys.stderr.write('make settings: name the cluster: make settings CLUSTER=prod SET="mode=plan"\n')
        return 2
    try:
        path = get_settings_path(options.cluster, options.folder)
        values = (read_old_settings(options.old) if options.old else {}) | parse_assignments(options.settings)
        is_new = update_file(path, values)
    except ValueError as error:
        sys.stderr.writelines(f"make settings: {message}\n" for message in list_errors(error))
        return 2
    sys.stdout.write(f"{format_path(path)}: {'created' if is_new else 'changed' if values else 'unchanged'}\n")
    sys.stdout.writelines(f"  {name}: {render_value(name, value)}\n" for name, value in values.items())
    sys.stdout.write(f"To deploy: npx cdk deploy -c cluster={options.cluster}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
