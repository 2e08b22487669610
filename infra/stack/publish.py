"""`make dist`: the stack as a plain template and zip files, for deployment with CloudFormation or Terraform.

The template has one parameter, the bucket that the zip files were copied to; it needs no `cdk bootstrap`. The zip files
are named after the hash of their content, so that an update changes only what changed.
"""

import argparse
import json
import shutil
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import aws_cdk as cdk

from infra.settings.files.selection import CLUSTERS_FOLDER, load_cluster
from infra.settings.settings import StackOptions
from infra.stack.application import build_application

ROOT: Final = Path(__file__).resolve().parents[2]
BUCKET_PARAMETER: Final = "AssetsBucket"
KEY_PREFIX: Final = "joiner/"
TEMPLATE_FILENAME: Final = "joiner.template.json"
ZIP_TIMESTAMP: Final = (1980, 1, 1, 0, 0, 0)
"""The timestamp of every file in a zip, so that the same content gives the same zip."""
MAX_TEMPLATE_BYTES: Final = 1_000_000
"""The size of a template that CloudFormation reads from a bucket."""


def read_version() -> str:
    """Return the version of the project, from pyproject.toml."""
    version: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return version


def build_synthesizer() -> cdk.DefaultStackSynthesizer:
    """Return a synthesizer with which the template finds its assets in the bucket of its parameter."""
    return cdk.DefaultStackSynthesizer(
        file_assets_bucket_name=f"${{{BUCKET_PARAMETER}}}",
        bucket_prefix=KEY_PREFIX,
        generate_bootstrap_version_rule=False,
    )


def publish_stack(folder: Path, options: StackOptions, *, bundle: bool = True) -> tuple[Path, ...]:
    """Write the template and its zip files into *folder*, which is recreated; return all paths, sorted.

    Raises:
        ValueError: the template is too large.
    """
    with tempfile.TemporaryDirectory() as outdir:
        app = build_application(bundle=bundle, outdir=outdir, clusters=[options], synthesizer=build_synthesizer())
        [stack] = [child for child in app.node.children if isinstance(child, cdk.Stack)]
        _add_bucket_parameter(stack)
        [assembly] = app.synth().stacks
        text = json.dumps(assembly.template, separators=(",", ":"), sort_keys=True)
        if len(text) > MAX_TEMPLATE_BYTES:
            raise ValueError(
                f"the template has {len(text):,} bytes, but CloudFormation accepts {MAX_TEMPLATE_BYTES:,} bytes"
            )
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / TEMPLATE_FILENAME).write_text(text)
        for source, name in _iterate_assets(Path(outdir), assembly.id):
            _write_zip(source, folder / name)
    return tuple(sorted(folder.iterdir()))


def build_from_command_line(
    program: str,
    description: str,
    build: Callable[[Path, StackOptions], tuple[Path, ...]],
    arguments: Sequence[str] | None,
    *,
    default_cluster: str = "",
) -> Path | None:
    """Call *build* with the folder and the cluster of the command line; list the files that it wrote.

    Return the folder, or None if the cluster's settings are invalid or *build* refused them.
    """
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "dist", help="output folder; existing content is deleted"
    )
    parser.add_argument("--cluster", metavar="NAME", default="", help="name of the EKS cluster: clusters/NAME.yaml")
    parser.add_argument("--clusters-folder", type=Path, default=CLUSTERS_FOLDER, help="folder of the settings files")
    options = parser.parse_args(arguments)
    folder: Path = options.output
    cluster = options.cluster or default_cluster
    if not cluster:
        sys.stderr.write(f"{program}: no cluster is selected: run `{program} CLUSTER=NAME`\n")
        return None
    try:
        paths = build(folder, load_cluster(cluster, options.clusters_folder))
    except ValueError as error:
        sys.stderr.write(f"{program}: {error}\n")
        return None
    sys.stdout.writelines(f"{path.stat().st_size:>12,}  {path}\n" for path in paths)
    return folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Publish the stack; return 2 if a setting is invalid."""
    folder = build_from_command_line(
        "make dist", "Write the stack as a CloudFormation template and zip files.", publish_stack, arguments
    )
    if folder is None:
        return 2
    sys.stdout.write(
        _NEXT_STEPS.format(folder=folder, prefix=KEY_PREFIX, bucket=BUCKET_PARAMETER, template=TEMPLATE_FILENAME)
    )
    return 0


_NEXT_STEPS: Final = """
aws s3 cp {folder} s3://BUCKET/{prefix} --recursive
aws cloudformation create-stack --stack-name joiner --capabilities CAPABILITY_IAM \\
    --template-url https://BUCKET.s3.REGION.amazonaws.com/{prefix}{template} \\
    --parameters ParameterKey={bucket},ParameterValue=BUCKET
"""


def _add_bucket_parameter(stack: cdk.Stack) -> None:
    cdk.CfnParameter(
        stack,
        BUCKET_PARAMETER,
        description=f"S3 bucket in the region of the stack that contains the zip files under {KEY_PREFIX}",
        allowed_pattern="^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$",
    )


def _iterate_assets(outdir: Path, artifact: str) -> Iterator[tuple[Path, str]]:
    """Yield the source and the object name of each asset, without the template itself."""
    manifest: dict[str, Any] = json.loads((outdir / f"{artifact}.assets.json").read_text())
    for asset in manifest["files"].values():
        source = outdir / asset["source"]["path"]
        if not source.name.endswith(".template.json"):
            [destination] = asset["destinations"].values()
            yield source, Path(destination["objectKey"]).name


def _write_zip(source: Path, target: Path) -> None:
    if source.is_file():
        shutil.copyfile(source, target)
        return
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(candidate for candidate in source.rglob("*") if candidate.is_file()):
            info = zipfile.ZipInfo(path.relative_to(source).as_posix(), ZIP_TIMESTAMP)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes())


if __name__ == "__main__":
    sys.exit(main())
