"""Images of a node class: an alias stands for several SSM parameters; of equal images the newest is used."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from shared.decide.launch.ami_families.ami_family import AMI_FAMILIES
from shared.model.core.labels import ACCELERATOR_COUNT, ARCH, GPU_COUNT, OS, WINDOWS_BUILD
from shared.model.core.requirements import Requirement, Requirements, build_requirements, list_requirement_entries
from shared.model.ec2.account import Image
from shared.model.ec2.types import KUBERNETES_ARCH_BY_EC2_ARCH
from shared.model.karpenter.node_class import FAMILY_BY_ALIAS, EC2NodeClass, ResolvedImage

_REQUIREMENTS_BY_VARIANT: Final = {
    "standard": (Requirement(key=GPU_COUNT), Requirement(key=ACCELERATOR_COUNT)),
    "nvidia": (Requirement(key=GPU_COUNT, complement=True),),
    "neuron": (Requirement(key=ACCELERATOR_COUNT, complement=True),),
} | {
    name: (
        Requirement(key=OS, values=frozenset(("windows",))),
        Requirement(key=WINDOWS_BUILD, values=frozenset((family.windows_build,))),
    )
    for name, family in AMI_FAMILIES.items()
    if family.windows_build
}
_EKS_PARAMETER_PREFIX: Final = "/aws/service/eks/optimized-ami"
_AL2_PARAMETERS: Final = (
    ("", "-node", ("standard",)),
    ("-arm64", "-arm64-node", ("standard",)),
    ("-gpu", "-gpu-node", ("neuron", "nvidia")),
)
_AL2023_PARAMETERS: Final = (("x86_64", ("standard", "nvidia", "neuron")), ("arm64", ("standard", "nvidia")))
_MAX_AL2_KUBERNETES_MINOR: Final = 32
_MIN_WINDOWS2025_KUBERNETES_MINOR: Final = 35
"""Minor versions of Kubernetes."""


class ImageParameter(msgspec.Struct, frozen=True, kw_only=True):
    """An SSM parameter with an image id as value, and the instance type variants that the image is for."""

    name: str
    variants: tuple[str, ...]


def list_image_parameters(node_class: EC2NodeClass, kubernetes_version: str) -> tuple[ImageParameter, ...]:
    """Return the SSM parameters of the alias and of the ssmParameter terms of *node_class*."""
    parameters: list[ImageParameter] = []
    for term in node_class.image_selectors:
        if term.ssm_parameter:
            parameters.append(ImageParameter(name=term.ssm_parameter, variants=()))
        elif term.alias:
            family, _, version = term.alias.partition("@")
            parameters.extend(
                _list_alias_parameters(FAMILY_BY_ALIAS.get(family.lower(), ""), version, kubernetes_version)
            )
    return tuple(parameters)


def explain_unsupported_alias(node_class: EC2NodeClass, kubernetes_version: str) -> str:
    """Return why the alias' family has no images for *kubernetes_version*; "" if it has."""
    minor = int(kubernetes_version.partition(".")[2] or 0)
    for number, term in enumerate(node_class.image_selectors):
        family = FAMILY_BY_ALIAS.get(term.alias.partition("@")[0].lower(), "")
        path = f"spec.amiSelectorTerms[{number}].alias"
        if family == "AL2" and minor > _MAX_AL2_KUBERNETES_MINOR:
            return f"{path}: {term.alias}: AL2 does not support Kubernetes {kubernetes_version}: use al2023@latest"
        if family == "Windows2025" and minor and minor < _MIN_WINDOWS2025_KUBERNETES_MINOR:
            min_version = f"1.{_MIN_WINDOWS2025_KUBERNETES_MINOR}"
            need = f"Windows 2025 requires Kubernetes {min_version}, the cluster has {kubernetes_version}"
            return f"{path}: {term.alias}: {need}: use windows2022@latest"
    return ""


def select_newest_images(images: Iterable[tuple[Image, tuple[str, ...]]], now: datetime) -> tuple[ResolvedImage, ...]:
    """Return status.amis: the best image for each set of requirements, newest first, then by id.

    An image that is not deprecated precedes a deprecated one; then the newer one, then the later name. *images* come
    with the variants that they are for; images of the user's own terms have none and are for any type of their
    architecture.
    """
    best: dict[str, tuple[tuple[bool, datetime, str], Image, Requirements]] = {}
    for image, image_requirements in _pair_with_requirements(images):
        key = json.dumps(list_requirement_entries(image_requirements))
        is_current = image.deprecated_at is None or image.deprecated_at > now
        rank = (is_current, image.created_at, image.name)
        if key not in best or rank > best[key][0]:
            best[key] = (rank, image, image_requirements)
    ordered = sorted(best.items(), key=lambda item: (-item[1][1].created_at.timestamp(), item[1][1].image_id, item[0]))
    return tuple(
        ResolvedImage(image_id=image.image_id, name=image.name, requirements=image_requirements, deprecated=not rank[0])
        for _, (rank, image, image_requirements) in ordered
    )


def describe_unsupported_architectures(images: Iterable[tuple[Image, tuple[str, ...]]]) -> tuple[str, ...]:
    """Return a message for each image with an architecture that Kubernetes nodes do not support, sorted."""
    return tuple(
        sorted(
            f"image {image.image_id} is of architecture {image.architecture}: choose one of x86_64 or arm64"
            for image, _ in images
            if image.architecture not in KUBERNETES_ARCH_BY_EC2_ARCH
        )
    )


def _pair_with_requirements(images: Iterable[tuple[Image, tuple[str, ...]]]) -> Iterator[tuple[Image, Requirements]]:
    for image, variants in images:
        if image.architecture not in KUBERNETES_ARCH_BY_EC2_ARCH:
            continue
        arch = Requirement(key=ARCH, values=frozenset((KUBERNETES_ARCH_BY_EC2_ARCH[image.architecture],)))
        for extra in [_REQUIREMENTS_BY_VARIANT[variant] for variant in variants] or [()]:
            yield image, build_requirements((arch, *extra))


def _list_alias_parameters(family: str, version: str, kubernetes: str) -> Iterator[ImageParameter]:
    match family:
        case "AL2":
            for folder, word, variants in _AL2_PARAMETERS:
                release = "recommended" if version == "latest" else f"amazon-eks{word}-{kubernetes}-{version}"
                name = f"{_EKS_PARAMETER_PREFIX}/{kubernetes}/amazon-linux-2{folder}/{release}/image_id"
                yield ImageParameter(name=name, variants=variants)
        case "AL2023":
            yield from _list_al2023_parameters(version, kubernetes)
        case "Bottlerocket":
            release = version.lstrip("v")
            base = f"/aws/service/bottlerocket/aws-k8s-{kubernetes}"
            yield ImageParameter(name=f"{base}/x86_64/{release}/image_id", variants=("standard", "neuron"))
            yield ImageParameter(name=f"{base}/arm64/{release}/image_id", variants=("standard",))
            for arch in ("x86_64", "arm64"):
                yield ImageParameter(name=f"{base}-nvidia/{arch}/{release}/image_id", variants=("nvidia",))
        case "Windows2019" | "Windows2022" | "Windows2025":
            year = family.removeprefix("Windows")
            server = f"Windows_Server-{year}-English-Core-EKS_Optimized-{kubernetes}"
            yield ImageParameter(name=f"/aws/service/ami-windows-latest/{server}/image_id", variants=(family,))
        case _:
            return


def _list_al2023_parameters(version: str, kubernetes: str) -> Iterator[ImageParameter]:
    for arch, variants in _AL2023_PARAMETERS:
        for variant in variants:
            image_name = f"amazon-eks-node-al2023-{arch}-{variant}-{kubernetes}-{version}"
            release = "recommended" if version == "latest" else image_name
            name = f"{_EKS_PARAMETER_PREFIX}/{kubernetes}/amazon-linux-2023/{arch}/{variant}/{release}/image_id"
            yield ImageParameter(name=name, variants=(variant,))
