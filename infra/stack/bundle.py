"""`make bundle`: the stack and its cluster objects as files for Git, for Terraform and Argo CD.

It writes the template and the zip files of `make dist`, and adds the cluster objects, an index and checksums.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from infra.settings.errors import list_errors
from infra.settings.files.selection import CLUSTERS_FOLDER, load_cluster
from infra.settings.settings import StackOptions
from infra.stack.bundle_files import INDEX_FILENAME, Files, build_bundle, format_bundle_name
from infra.stack.bundle_output import copy_assets, list_earlier_files, write_archive, write_folder
from infra.stack.publish import KEY_PREFIX, ROOT, TEMPLATE_FILENAME, publish_stack

PROGRAM: Final = "make bundle"
DESCRIPTION: Final = """\
Write the bundle of a cluster: the CloudFormation template, the Kubernetes objects as a kustomize base, an index with
the version and checksums, and a README. Put it into Git; Terraform and Argo CD read it from there. The zip files of the
functions are written to another folder, from which you copy them to a bucket. The same settings and the same version of
Joiner give the same bytes."""
EPILOG: Final = """\
examples:
  make bundle CLUSTER=prod
  make bundle CLUSTER=prod TO=../gitops/clusters/prod/joiner
  make bundle CLUSTER=prod ARCHIVE=dist/joiner-prod.tar.gz
  make bundle CLUSTER=prod OUTPUT=json

exit codes:
  0  the bundle was written
  2  no cluster is selected, a setting is invalid, or the folder has other files
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cluster", metavar="NAME", default="", help="name of the EKS cluster: clusters/NAME.yaml")
    parser.add_argument("--clusters-folder", type=Path, default=CLUSTERS_FOLDER, help="folder of the settings files")
    parser.add_argument(
        "--to",
        type=Path,
        default=ROOT / "dist" / "bundle",
        metavar="FOLDER",
        help="folder of the bundle; replaces an earlier one",
    )
    parser.add_argument("--archive", type=Path, metavar="FILE", help="write this tar.gz file instead of the folder")
    parser.add_argument(
        "--assets", type=Path, default=ROOT / "dist" / "assets", metavar="FOLDER", help="folder of the zip files"
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="format of the summary")
    return parser


def write_bundle(
    options: StackOptions, folder: Path, assets_folder: Path, archive: Path | None = None, *, bundle: bool = True
) -> Files:
    """Write the bundle of one cluster to *folder*, or to *archive*, and its zip files to *assets_folder*.

    Without *bundle*, the code of the functions is not packaged, which saves a minute.

    Raises:
        ValueError: a setting is invalid, or *folder* has other files; nothing was written.
    """
    if archive is None:
        list_earlier_files(folder)
    with tempfile.TemporaryDirectory() as temporary:
        published = publish_stack(Path(temporary, "stack"), options, bundle=bundle)
        zip_files = [path for path in published if path.suffix == ".zip"]
        [template] = [path for path in published if path.name == TEMPLATE_FILENAME]
        files = build_bundle(options, template.read_bytes(), zip_files)
        copy_assets(assets_folder, zip_files)
    if archive is None:
        write_folder(folder, files)
    else:
        write_archive(archive, format_bundle_name(options.cluster), files)
    return files


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a bundle; return 2 if it cannot be written."""
    options = build_parser().parse_args(arguments)
    if not options.cluster:
        sys.stderr.write(f"{PROGRAM}: no cluster is selected: run `{PROGRAM} CLUSTER=NAME`\n")
        return 2
    try:
        settings = load_cluster(options.cluster, options.clusters_folder)
        files = write_bundle(settings, options.to, options.assets, options.archive)
    except (OSError, ValueError) as error:
        messages = list_errors(error) if isinstance(error, ValueError) else [str(error)]
        sys.stderr.writelines(f"{PROGRAM}: {message}\n" for message in messages)
        return 2
    if options.output == "json":
        sys.stdout.write(files[INDEX_FILENAME].decode())
    else:
        sys.stdout.write(_format_summary(files, options.archive or options.to, options.assets))
    return 0


def _format_summary(files: Files, target: Path, assets_folder: Path) -> str:
    lines = [f"{len(content):>12,}  {path}\n" for path, content in files.items()]
    next_step = f"aws s3 cp {assets_folder} s3://BUCKET/{KEY_PREFIX} --recursive"
    return f"{''.join(lines)}\nbundle:    {target}\nzip files: {assets_folder}\n\n{next_step}\n"


if __name__ == "__main__":
    sys.exit(main())
