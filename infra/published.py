"""`make dist`: the stack as a plain template and zip files, for whoever deploys with CloudFormation or Terraform.

The template has one parameter, the bucket that the zip files were copied to; it needs no `cdk bootstrap`. The names of
the zip files are the hashes of what is in them, so that an update changes what changed and nothing else.
"""

import argparse
import json
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import aws_cdk as cdk

from infra.application import application

ROOT: Final = Path(__file__).resolve().parent.parent
BUCKET: Final = "AssetsBucket"
PREFIX: Final = "joiner/"
TEMPLATE: Final = "joiner.template.json"
EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""Of every file in a zip: the same content is the same zip."""
LONGEST: Final = 1_000_000
"""Bytes of a template that CloudFormation reads from a bucket."""


def synthesizer() -> cdk.DefaultStackSynthesizer:
    """Answer what makes a template find its assets in the bucket of its parameter."""
    return cdk.DefaultStackSynthesizer(
        file_assets_bucket_name=f"${{{BUCKET}}}",
        bucket_prefix=PREFIX,
        generate_bootstrap_version_rule=False,
    )


def publish(folder: Path, context: dict[str, object], *, bundle: bool = True) -> tuple[Path, ...]:
    """Write the template and its zip files into *folder*, which is made anew; answer all their paths, sorted.

    Raises:
        ValueError: a knob has a value that cannot be deployed, or the template is too long.
    """
    with tempfile.TemporaryDirectory() as outdir:
        app = application(bundle=bundle, outdir=outdir, context=context, synthesizer=synthesizer())
        stacks = [one for one in app.node.children if isinstance(one, cdk.Stack)]
        if len(stacks) > 1:
            raise ValueError("joiner:cluster names several: a template is for one")
        _ask_for_bucket(stacks[0])
        [synthesised] = app.synth().stacks
        text = json.dumps(synthesised.template, separators=(",", ":"), sort_keys=True)
        if len(text) > LONGEST:
            raise ValueError(f"the template has {len(text):,} bytes, CloudFormation reads {LONGEST:,}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / TEMPLATE).write_text(text)
        for source, name in _assets(Path(outdir), synthesised.id):
            _zip(source, folder / name)
    return tuple(sorted(folder.iterdir()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Publish; answer 2 where a knob is wrong."""
    parser = argparse.ArgumentParser(prog="make dist", description="The stack as a template and zip files.")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist", help="folder, made anew")
    parser.add_argument("-c", "--context", action="append", default=[], metavar="joiner:KNOB=VALUE")
    given = parser.parse_args(arguments)
    context: dict[str, object] = dict(one.partition("=")[::2] for one in given.context)
    try:
        files = publish(given.output, context)
    except ValueError as error:
        sys.stderr.write(f"make dist: {error}\n")
        return 2
    sys.stdout.writelines(f"{path.stat().st_size:>12,}  {path}\n" for path in files)
    sys.stdout.write(_NEXT.format(folder=given.output, prefix=PREFIX, bucket=BUCKET, template=TEMPLATE))
    return 0


_NEXT: Final = """
aws s3 cp {folder} s3://BUCKET/{prefix} --recursive
aws cloudformation create-stack --stack-name joiner --capabilities CAPABILITY_IAM \\
    --template-url https://BUCKET.s3.REGION.amazonaws.com/{prefix}{template} \\
    --parameters ParameterKey={bucket},ParameterValue=BUCKET
"""


def _ask_for_bucket(stack: cdk.Stack) -> None:
    cdk.CfnParameter(
        stack,
        BUCKET,
        description=f"The bucket, in the region of the stack, that holds the zip files below {PREFIX}",
        allowed_pattern="^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$",
    )


def _assets(outdir: Path, artifact: str) -> Iterator[tuple[Path, str]]:
    """Answer folder or file of each asset, and what the template calls it; the template itself is none."""
    manifest: dict[str, Any] = json.loads((outdir / f"{artifact}.assets.json").read_text())
    for asset in manifest["files"].values():
        source = outdir / asset["source"]["path"]
        if not source.name.endswith(".template.json"):
            [destination] = asset["destinations"].values()
            yield source, Path(destination["objectKey"]).name


def _zip(source: Path, target: Path) -> None:
    if source.is_file():
        shutil.copyfile(source, target)
        return
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(one for one in source.rglob("*") if one.is_file()):
            info = zipfile.ZipInfo(path.relative_to(source).as_posix(), EPOCH)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes())


if __name__ == "__main__":
    sys.exit(main())
