"""Arguments that select a cluster and its AWS account, the same in all commands."""

import argparse
from typing import Final

OUTPUT_FORMATS: Final = ("table", "json", "yaml")


def add_cluster_arguments(parser: argparse.ArgumentParser, default: str | None = "") -> None:
    """Add --context and --kubeconfig; *default* is their value if they are not given."""
    parser.add_argument(
        "--context", default=default, metavar="NAME", help="kubeconfig context (default: the current context)"
    )
    parser.add_argument(
        "--kubeconfig",
        default=default,
        metavar="FILE",
        help="path of the kubeconfig (default: $KUBECONFIG, else ~/.kube/config)",
    )


def add_account_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --cluster, --region and --stack."""
    for name, metavar, text in (
        ("--cluster", "NAME", "name of the EKS cluster (default: from the kubeconfig)"),
        ("--region", "REGION", "AWS region (default: from the cluster's ARN, else from your AWS configuration)"),
        ("--stack", "NAME", "name of the CloudFormation stack (default: joiner-<cluster>)"),
    ):
        parser.add_argument(name, metavar=metavar, default="", help=text)


def add_output_argument(parser: argparse.ArgumentParser) -> None:
    """Add -o."""
    parser.add_argument("-o", "--output", choices=OUTPUT_FORMATS, default="table", help="output format")
