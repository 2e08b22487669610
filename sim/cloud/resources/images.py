"""AMIs, and the SSM parameters that name the newest EKS AMIs."""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from shared.errors import NotFound
from shared.model.ec2.account import Image, SelectorTerm
from sim.cloud import seeded_random
from sim.cloud.resources.selector_terms import has_tags, is_match

KUBERNETES_VERSIONS: Final = ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35")
MAX_AL2_MINOR_VERSION: Final = 32
AL2023_VARIANTS: Final = (
    ("x86_64", "standard"),
    ("x86_64", "nvidia"),
    ("x86_64", "neuron"),
    ("arm64", "standard"),
    ("arm64", "nvidia"),
)
AL2_VARIANTS: Final = (("", "x86_64"), ("-arm64", "arm64"), ("-gpu", "x86_64"))
BOTTLEROCKET_VARIANTS: Final = (("", "x86_64"), ("", "arm64"), ("-nvidia", "x86_64"), ("-nvidia", "arm64"))
WINDOWS_RELEASES: Final = {"2019": 0, "2022": 0, "2025": 35}
"""Releases of Windows Server, with the first minor version of Kubernetes that each supports."""
DEFAULT_OWNERS: Final = ("self", "amazon")
"""Owners that are searched if a selector has a name and no owner."""
AMI_DEPRECATION_DELAY: Final = timedelta(days=730)


class EksImage(msgspec.Struct, frozen=True, kw_only=True):
    """One AMI of a release and the SSM parameters that name it.

    *latest_parameter* names it until the next release, *pinned_parameter* permanently.
    """

    name: str
    architecture: str
    latest_parameter: str
    pinned_parameter: str


class ImageRegistry:
    """The AMIs that are visible to the account, and the SSM parameters."""

    def __init__(self, seed: int) -> None:
        """Create an empty registry."""
        self.parameters: dict[str, str] = {}
        self._images: dict[str, tuple[Image, str]] = {}
        self._seed = seed
        self._release_count = 0

    def add(self, image: Image, owner: str = "self") -> str:
        """Register *image* and return its id; an empty id is generated."""
        image_id = image.image_id or seeded_random.build_resource_id("ami", self._seed, image.name, len(self._images))
        self._images[image_id] = (msgspec.structs.replace(image, image_id=image_id), owner)
        return image_id

    def remove(self, image_id: str) -> None:
        """Deregister an image; parameters that name it are left dangling, as in EC2.

        Raises:
            NotFound: there is no such image.
        """
        self.find(image_id)
        del self._images[image_id]

    def set_deprecation_time(self, image_id: str, at: datetime) -> None:
        """Set the time at which the image is deprecated.

        Raises:
            NotFound: there is no such image.
        """
        image, owner = self._images[self.find(image_id).image_id]
        self._images[image_id] = (msgspec.structs.replace(image, deprecated_at=at), owner)

    def find(self, image_id: str) -> Image:
        """Return one image.

        Raises:
            NotFound: there is no such image.
        """
        if image_id not in self._images:
            raise NotFound(f"InvalidAMIID.NotFound: The image id '[{image_id}]' does not exist")
        return self._images[image_id][0]

    def select(self, selectors: tuple[SelectorTerm, ...]) -> tuple[Image, ...]:
        """Return the union of the images that match *selectors*, newest first, then by id."""
        selected_images = [
            image
            for image, owner in self._images.values()
            if any(_is_image_selected(image, owner, s) for s in selectors)
        ]
        return tuple(sorted(selected_images, key=lambda image: (-image.created_at.timestamp(), image.image_id)))

    def publish_release(self, at: datetime) -> None:
        """Publish a new EKS AMI of every variant, created *at*; the parameters name it from now on."""
        self._release_count += 1
        for eks_image, image in _build_release(at, self._release_count, self._seed):
            self.add(image, owner="amazon")
            self.parameters[eks_image.latest_parameter] = self.parameters[eks_image.pinned_parameter] = image.image_id

    def get_parameter(self, name: str) -> str:
        """Return the parameter's value.

        Raises:
            NotFound: there is no such parameter.
        """
        if name not in self.parameters:
            raise NotFound(f"ParameterNotFound: {name}")
        return self.parameters[name]


@lru_cache(maxsize=64)
def _build_release(at: datetime, number: int, seed: int) -> tuple[tuple[EksImage, Image], ...]:
    """Return the AMIs of release *number*.

    Cached, because thousands of simulated clouds begin at the same time with the same releases.
    """
    return tuple(
        (
            eks_image,
            Image(
                image_id=seeded_random.build_resource_id("ami", seed, eks_image.pinned_parameter, number),
                name=eks_image.name,
                architecture=eks_image.architecture,
                created_at=at,
                deprecated_at=at + AMI_DEPRECATION_DELAY,
            ),
        )
        for eks_image in build_eks_images(at, number)
    )


def build_eks_images(at: datetime, number: int) -> tuple[EksImage, ...]:
    """Return the AMIs of release *number* (from 1), published *at*."""
    date, bottlerocket = f"v{at:%Y%m%d}", f"1.{40 + number}.0"
    images: list[EksImage] = []
    for version in KUBERNETES_VERSIONS:
        images += [_build_al2023_image(version, *variant, date) for variant in AL2023_VARIANTS]
        images += [_build_bottlerocket_image(version, *variant, bottlerocket) for variant in BOTTLEROCKET_VARIANTS]
        if int(version.split(".")[1]) <= MAX_AL2_MINOR_VERSION:
            images += [_build_al2_image(version, *variant, date) for variant in AL2_VARIANTS]
        images += [
            _build_windows_image(version, year)
            for year, first in WINDOWS_RELEASES.items()
            if int(version.split(".")[1]) >= first
        ]
    return tuple(images)


def _build_al2023_image(version: str, architecture: str, variant: str, date: str) -> EksImage:
    root = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{architecture}/{variant}"
    name = f"amazon-eks-node-al2023-{architecture}-{variant}-{version}-{date}"
    return _build_eks_image(root, name, architecture)


def _build_al2_image(version: str, suffix: str, architecture: str, date: str) -> EksImage:
    root = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2{suffix}"
    return _build_eks_image(root, f"amazon-eks{suffix}-node-{version}-{date}", architecture)


def _build_windows_image(version: str, year: str) -> EksImage:
    """Return the Windows AMI; only the newest release has a parameter."""
    name = f"Windows_Server-{year}-English-Core-EKS_Optimized-{version}"
    newest = f"/aws/service/ami-windows-latest/{name}/image_id"
    return EksImage(name=name, architecture="x86_64", latest_parameter=newest, pinned_parameter=newest)


def _build_eks_image(root: str, name: str, architecture: str) -> EksImage:
    return EksImage(
        name=name,
        architecture=architecture,
        latest_parameter=f"{root}/recommended/image_id",
        pinned_parameter=f"{root}/{name}/image_id",
    )


def _build_bottlerocket_image(version: str, suffix: str, architecture: str, number: str) -> EksImage:
    root = f"/aws/service/bottlerocket/aws-k8s-{version}{suffix}/{architecture}"
    return EksImage(
        name=f"bottlerocket-aws-k8s-{version}{suffix}-{architecture}-v{number}",
        architecture=architecture,
        latest_parameter=f"{root}/latest/image_id",
        pinned_parameter=f"{root}/{number}/image_id",
    )


def _is_image_selected(image: Image, owner: str, selector: SelectorTerm) -> bool:
    if selector.id:
        return image.image_id == selector.id
    if not selector.name and not selector.tags:
        return False
    owners = (selector.owner,) if selector.owner else DEFAULT_OWNERS if selector.name else (owner,)
    has_name = not selector.name or is_match(image.name, selector.name)
    return owner in owners and has_name and (not selector.tags or has_tags(dict(image.tags), selector.tags))
