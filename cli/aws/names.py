"""Names of instance types and regions that the installed AWS SDK contains; no request is sent."""

from functools import lru_cache

import botocore
from botocore.loaders import Loader
from botocore.session import Session

SDK_NAME = f"botocore {botocore.__version__}"


@lru_cache(maxsize=1)
def load_instance_type_names() -> frozenset[str]:
    """Return all instance types in the SDK's model of the EC2 API; empty if the model has no such list."""
    shapes = Loader().load_service_model("ec2", "service-2")["shapes"]
    return frozenset(shapes.get("InstanceType", {}).get("enum", ()))


@lru_cache(maxsize=1)
def load_region_names() -> frozenset[str]:
    """Return the regions of all partitions that have EC2."""
    session = Session()
    partitions = session.get_available_partitions()
    return frozenset(region for partition in partitions for region in session.get_available_regions("ec2", partition))
