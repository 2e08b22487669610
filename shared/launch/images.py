"""Which images a node class means: an alias is a handful of SSM parameters, and of equal images the newest wins."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from shared.launch.families import ALIASES, FAMILIES
from shared.model.ec2 import Image
from shared.model.labels import ARCH, OS, WINDOWS_BUILD
from shared.model.nodeclasses import EC2NodeClass, ResolvedImage
from shared.model.requirements import Requirement, Requirements, requirements, written

ARCHES: Final = {"x86_64": "amd64", "arm64": "arm64"}
_GPU: Final = "karpenter.k8s.aws/instance-gpu-count"
_ACCELERATOR: Final = "karpenter.k8s.aws/instance-accelerator-count"
_VARIANTS: Final = {
    "standard": (Requirement(key=_GPU), Requirement(key=_ACCELERATOR)),
    "nvidia": (Requirement(key=_GPU, complement=True),),
    "neuron": (Requirement(key=_ACCELERATOR, complement=True),),
} | {
    name: (
        Requirement(key=OS, values=frozenset(("windows",))),
        Requirement(key=WINDOWS_BUILD, values=frozenset((family.windows_build,))),
    )
    for name, family in FAMILIES.items()
    if family.windows_build
}
_EKS: Final = "/aws/service/eks/optimized-ami"
_AL2: Final = (
    ("", "-node", ("standard",)),
    ("-arm64", "-arm64-node", ("standard",)),
    ("-gpu", "-gpu-node", ("neuron", "nvidia")),
)
_AL2023: Final = (("x86_64", ("standard", "nvidia", "neuron")), ("arm64", ("standard", "nvidia")))
_LAST_AL2: Final = 32
_FIRST_WINDOWS2025: Final = 35
"""Minor versions of Kubernetes."""


class WantedParameter(msgspec.Struct, frozen=True, kw_only=True):
    """An SSM parameter whose value is an image id, and which types that image is for besides its architecture."""

    name: str
    variants: tuple[str, ...]


def parameters_wanted(node_class: EC2NodeClass, kubernetes_version: str) -> tuple[WantedParameter, ...]:
    """Answer the parameters behind the alias and the ssmParameter terms of *node_class*."""
    wanted: list[WantedParameter] = []
    for term in node_class.image_selectors:
        if term.ssm_parameter:
            wanted.append(WantedParameter(name=term.ssm_parameter, variants=()))
        elif term.alias:
            family, _, version = term.alias.partition("@")
            wanted.extend(_alias(ALIASES.get(family.lower(), ""), version, kubernetes_version))
    return tuple(wanted)


def is_mutable(parameter: str) -> bool:
    """Whether the value of *parameter* moves with every release.

    >>> is_mutable("/aws/service/bottlerocket/aws-k8s-1.34/arm64/latest/image_id"), is_mutable("/a/1.42.0/image_id")
    (True, False)
    """
    return any(f"/{word}" in parameter for word in ("recommended/", "latest/", "ami-windows-latest/"))


def unsupported_alias(node_class: EC2NodeClass, kubernetes_version: str) -> str:
    """Answer why there are no images of the alias' family for that version of Kubernetes, "" if there are."""
    minor = int(kubernetes_version.partition(".")[2] or 0)
    for number, term in enumerate(node_class.image_selectors):
        family = ALIASES.get(term.alias.partition("@")[0].lower(), "")
        path = f"spec.amiSelectorTerms[{number}].alias"
        if family == "AL2" and minor > _LAST_AL2:
            return f"{path}: {term.alias}: there is no AL2 for Kubernetes {kubernetes_version}: use al2023@latest"
        if family == "Windows2025" and minor and minor < _FIRST_WINDOWS2025:
            need = f"Windows 2025 begins with Kubernetes 1.{_FIRST_WINDOWS2025}, and this is {kubernetes_version}"
            return f"{path}: {term.alias}: {need}: use windows2022@latest"
    return ""


def best_images(images: Iterable[tuple[Image, tuple[str, ...]]], now: datetime) -> tuple[ResolvedImage, ...]:
    """Answer status.amis: per set of requirements the best image, newest first, then by id.

    One that is not deprecated beats one that is; then the newer one, then the later name. *images* come with the
    variants that they are for; those of the user's own terms have none, and are for any type of their architecture.
    """
    best: dict[str, tuple[tuple[bool, datetime, str], Image, Requirements]] = {}
    for image, wanted in _with_requirements(images):
        key = json.dumps(written(wanted))
        alive = image.deprecated_at is None or image.deprecated_at > now
        rank = (alive, image.created_at, image.name)
        if key not in best or rank > best[key][0]:
            best[key] = (rank, image, wanted)
    ordered = sorted(best.items(), key=lambda item: (-item[1][1].created_at.timestamp(), item[1][1].image_id, item[0]))
    return tuple(
        ResolvedImage(image_id=image.image_id, name=image.name, requirements=wanted, deprecated=not rank[0])
        for _, (rank, image, wanted) in ordered
    )


def foreign_architectures(images: Iterable[tuple[Image, tuple[str, ...]]]) -> tuple[str, ...]:
    """Name the images that no Kubernetes node can have, sorted."""
    return tuple(
        sorted(
            f"image {image.image_id} is of architecture {image.architecture}: choose one of x86_64 or arm64"
            for image, _ in images
            if image.architecture not in ARCHES
        )
    )


def _with_requirements(images: Iterable[tuple[Image, tuple[str, ...]]]) -> Iterator[tuple[Image, Requirements]]:
    for image, variants in images:
        if image.architecture not in ARCHES:
            continue
        arch = Requirement(key=ARCH, values=frozenset((ARCHES[image.architecture],)))
        for extra in [_VARIANTS[variant] for variant in variants] or [()]:
            yield image, requirements((arch, *extra))


def _alias(family: str, version: str, kubernetes: str) -> Iterator[WantedParameter]:
    match family:
        case "AL2":
            for folder, word, variants in _AL2:
                which = "recommended" if version == "latest" else f"amazon-eks{word}-{kubernetes}-{version}"
                name = f"{_EKS}/{kubernetes}/amazon-linux-2{folder}/{which}/image_id"
                yield WantedParameter(name=name, variants=variants)
        case "AL2023":
            yield from _al2023(version, kubernetes)
        case "Bottlerocket":
            which = version.lstrip("v")
            base = f"/aws/service/bottlerocket/aws-k8s-{kubernetes}"
            yield WantedParameter(name=f"{base}/x86_64/{which}/image_id", variants=("standard", "neuron"))
            yield WantedParameter(name=f"{base}/arm64/{which}/image_id", variants=("standard",))
            for arch in ("x86_64", "arm64"):
                yield WantedParameter(name=f"{base}-nvidia/{arch}/{which}/image_id", variants=("nvidia",))
        case "Windows2019" | "Windows2022" | "Windows2025":
            year = family.removeprefix("Windows")
            server = f"Windows_Server-{year}-English-Core-EKS_Optimized-{kubernetes}"
            yield WantedParameter(name=f"/aws/service/ami-windows-latest/{server}/image_id", variants=(family,))
        case _:
            return


def _al2023(version: str, kubernetes: str) -> Iterator[WantedParameter]:
    for arch, variants in _AL2023:
        for variant in variants:
            named = f"amazon-eks-node-al2023-{arch}-{variant}-{kubernetes}-{version}"
            which = "recommended" if version == "latest" else named
            name = f"{_EKS}/{kubernetes}/amazon-linux-2023/{arch}/{variant}/{which}/image_id"
            yield WantedParameter(name=name, variants=(variant,))
