"""Machine images, and the SSM parameters that name the newest of EKS's own."""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from shared.errors import Gone
from shared.model.ec2 import Image, Selector
from sim.cloud import chance
from sim.cloud.selectors import has_tags, matches

KUBERNETES_VERSIONS: Final = ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35")
LAST_AL2_MINOR: Final = 32
AL2023: Final = (
    ("x86_64", "standard"),
    ("x86_64", "nvidia"),
    ("x86_64", "neuron"),
    ("arm64", "standard"),
    ("arm64", "nvidia"),
)
AL2: Final = (("", "x86_64"), ("-arm64", "arm64"), ("-gpu", "x86_64"))
BOTTLEROCKET: Final = (("", "x86_64"), ("", "arm64"), ("-nvidia", "x86_64"), ("-nvidia", "arm64"))
WINDOWS: Final = {"2019": 0, "2022": 0, "2025": 35}
"""Releases of Windows Server, and the minor version of Kubernetes with which each begins."""
OWNERS: Final = ("self", "amazon")
"""Who is asked when a selector has a name and no owner."""
LIFE: Final = timedelta(days=730)


class EksImage(msgspec.Struct, frozen=True, kw_only=True):
    """One image of a release and the parameters that lead to it: *newest* until the next release, *pinned* for good."""

    name: str
    architecture: str
    newest: str
    pinned: str


class Shelf:
    """The images that can be seen from the account, and the parameters."""

    def __init__(self, seed: int) -> None:
        """Begin empty."""
        self.parameters: dict[str, str] = {}
        self._images: dict[str, tuple[Image, str]] = {}
        self._seed = seed
        self._releases = 0

    def add(self, image: Image, owner: str = "self") -> str:
        """Put *image* on the shelf and answer its id; an empty id is filled."""
        image_id = image.image_id or chance.identity("ami", self._seed, image.name, len(self._images))
        self._images[image_id] = (msgspec.structs.replace(image, image_id=image_id), owner)
        return image_id

    def remove(self, image_id: str) -> None:
        """Deregister; parameters that name it are left dangling, as in EC2.

        Raises:
            Gone: there is none.
        """
        self.find(image_id)
        del self._images[image_id]

    def deprecate(self, image_id: str, at: datetime) -> None:
        """Say from when on it is deprecated.

        Raises:
            Gone: there is none.
        """
        image, owner = self._images[self.find(image_id).image_id]
        self._images[image_id] = (msgspec.structs.replace(image, deprecated_at=at), owner)

    def find(self, image_id: str) -> Image:
        """Answer one.

        Raises:
            Gone: there is none.
        """
        if image_id not in self._images:
            raise Gone(f"InvalidAMIID.NotFound: The image id '[{image_id}]' does not exist")
        return self._images[image_id][0]

    def select(self, selectors: tuple[Selector, ...]) -> tuple[Image, ...]:
        """Answer the union, newest first, then by id."""
        chosen = [image for image, owner in self._images.values() if any(_fits(image, owner, s) for s in selectors)]
        return tuple(sorted(chosen, key=lambda image: (-image.created_at.timestamp(), image.image_id)))

    def release(self, at: datetime) -> None:
        """Let EKS publish a new image of every kind, created *at*, to which its parameters lead from now on."""
        self._releases += 1
        for kind, image in _released(at, self._releases, self._seed):
            self.add(image, owner="amazon")
            self.parameters[kind.newest] = self.parameters[kind.pinned] = image.image_id

    def parameter(self, name: str) -> str:
        """Answer the value.

        Raises:
            Gone: there is no such parameter.
        """
        if name not in self.parameters:
            raise Gone(f"ParameterNotFound: {name}")
        return self.parameters[name]


@lru_cache(maxsize=64)
def _released(at: datetime, number: int, seed: int) -> tuple[tuple[EksImage, Image], ...]:
    """Answer release *number*; kept, because thousands of clouds begin at the same time with the same releases."""
    return tuple(
        (
            kind,
            Image(
                image_id=chance.identity("ami", seed, kind.pinned, number),
                name=kind.name,
                architecture=kind.architecture,
                created_at=at,
                deprecated_at=at + LIFE,
            ),
        )
        for kind in eks_images(at, number)
    )


def eks_images(at: datetime, number: int) -> tuple[EksImage, ...]:
    """Answer what release *number*, from 1, made *at*, is made of."""
    date, bottlerocket = f"v{at:%Y%m%d}", f"1.{40 + number}.0"
    kinds: list[EksImage] = []
    for version in KUBERNETES_VERSIONS:
        kinds += [_al2023(version, *variant, date) for variant in AL2023]
        kinds += [_bottlerocket(version, *variant, bottlerocket) for variant in BOTTLEROCKET]
        if int(version.split(".")[1]) <= LAST_AL2_MINOR:
            kinds += [_al2(version, *variant, date) for variant in AL2]
        kinds += [_windows(version, year) for year, first in WINDOWS.items() if int(version.split(".")[1]) >= first]
    return tuple(kinds)


def _al2023(version: str, architecture: str, variant: str, date: str) -> EksImage:
    root = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{architecture}/{variant}"
    name = f"amazon-eks-node-al2023-{architecture}-{variant}-{version}-{date}"
    return _eks_image(root, name, architecture)


def _al2(version: str, suffix: str, architecture: str, date: str) -> EksImage:
    root = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2{suffix}"
    return _eks_image(root, f"amazon-eks{suffix}-node-{version}-{date}", architecture)


def _windows(version: str, year: str) -> EksImage:
    """Answer the image; there is a parameter for the newest release only."""
    name = f"Windows_Server-{year}-English-Core-EKS_Optimized-{version}"
    newest = f"/aws/service/ami-windows-latest/{name}/image_id"
    return EksImage(name=name, architecture="x86_64", newest=newest, pinned=newest)


def _eks_image(root: str, name: str, architecture: str) -> EksImage:
    return EksImage(
        name=name,
        architecture=architecture,
        newest=f"{root}/recommended/image_id",
        pinned=f"{root}/{name}/image_id",
    )


def _bottlerocket(version: str, suffix: str, architecture: str, number: str) -> EksImage:
    root = f"/aws/service/bottlerocket/aws-k8s-{version}{suffix}/{architecture}"
    return EksImage(
        name=f"bottlerocket-aws-k8s-{version}{suffix}-{architecture}-v{number}",
        architecture=architecture,
        newest=f"{root}/latest/image_id",
        pinned=f"{root}/{number}/image_id",
    )


def _fits(image: Image, owner: str, selector: Selector) -> bool:
    if selector.id:
        return image.image_id == selector.id
    if not selector.name and not selector.tags:
        return False
    owners = (selector.owner,) if selector.owner else OWNERS if selector.name else (owner,)
    named = not selector.name or matches(image.name, selector.name)
    return owner in owners and named and (not selector.tags or has_tags(dict(image.tags), selector.tags))
