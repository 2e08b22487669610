"""S3 buckets, DynamoDB tables, SSM parameters, KMS keys and ECR repositories."""

import json
from typing import Any, Final

from sim.aws_account.resource_types.resource_provider import (
    ConfiguredResourceProvider,
    PhysicalResource,
    Properties,
    PutResourceProvider,
    ResourceProvider,
    ResourceRequest,
    build_resource,
    remove_keys,
    rename_keys,
    select_keys,
)


class BucketProvider(ConfiguredResourceProvider):
    """AWS::S3::Bucket."""

    create_only_properties = frozenset({"BucketName"})
    delete_call = ("s3", "delete_bucket", "Bucket")

    def create_unconfigured(self, request: ResourceRequest) -> PhysicalResource:
        """Create the bucket."""
        name = request.properties.get("BucketName") or request.generate_name(63).lower()
        region = request.services.region
        location = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        request.get_client("s3").create_bucket(Bucket=name, **location)
        return build_resource(
            name,
            Arn=f"arn:aws:s3:::{name}",
            DomainName=f"{name}.s3.amazonaws.com",
            RegionalDomainName=f"{name}.s3.{region}.amazonaws.com",
            WebsiteURL=f"http://{name}.s3-website-{region}.amazonaws.com",
        )

    def configure(self, request: ResourceRequest, physical_id: str) -> None:
        """Write the configurations of the bucket; removed configurations are deleted."""
        s3, name, properties = request.get_client("s3"), physical_id, request.properties
        if "LifecycleConfiguration" in request.removed_properties:
            s3.delete_bucket_lifecycle(Bucket=name)
        if "BucketEncryption" in request.removed_properties:
            s3.delete_bucket_encryption(Bucket=name)
        if "PublicAccessBlockConfiguration" in request.removed_properties:
            s3.delete_public_access_block(Bucket=name)
        for key, write in (
            ("VersioningConfiguration", s3.put_bucket_versioning),
            ("PublicAccessBlockConfiguration", s3.put_public_access_block),
            ("OwnershipControls", s3.put_bucket_ownership_controls),
        ):
            if key in properties:
                write(Bucket=name, **{key: properties[key]})
        if "BucketEncryption" in properties:
            names = {"ServerSideEncryptionByDefault": "ApplyServerSideEncryptionByDefault"}
            rules = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
            configuration = {"Rules": [rename_keys(rule, names) for rule in rules]}
            s3.put_bucket_encryption(Bucket=name, ServerSideEncryptionConfiguration=configuration)
        if "LifecycleConfiguration" in properties:
            rules = [_build_lifecycle_rule(rule) for rule in properties["LifecycleConfiguration"]["Rules"]]
            s3.put_bucket_lifecycle_configuration(Bucket=name, LifecycleConfiguration={"Rules": rules})
        if "Tags" in properties:
            s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": properties["Tags"]})


def _build_lifecycle_rule(properties: Properties) -> dict[str, Any]:
    rule = select_keys(properties, "Status", "AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration")
    if "ExpirationInDays" in properties:
        rule["Expiration"] = {"Days": int(properties["ExpirationInDays"])}
    rule["Filter"] = {"Prefix": properties.get("Prefix", "")}
    return rule | rename_keys(select_keys(properties, "Id"), {"Id": "ID"})


class BucketPolicyProvider(PutResourceProvider):
    """AWS::S3::BucketPolicy."""

    create_only_properties = frozenset({"Bucket"})
    delete_call = ("s3", "delete_bucket_policy", "Bucket")

    def write(self, request: ResourceRequest) -> PhysicalResource:
        """Set the bucket policy."""
        bucket, policy = request.properties["Bucket"], json.dumps(request.properties["PolicyDocument"])
        request.get_client("s3").put_bucket_policy(Bucket=bucket, Policy=policy)
        return build_resource(bucket)


_DISABLED_SETTINGS: Final[dict[str, Any]] = {
    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": False},
    "TimeToLiveSpecification": {"Enabled": False},
}
"""The settings of a table that have API calls of their own, with the values that disable them."""


class TableProvider(ResourceProvider):
    """AWS::DynamoDB::Table."""

    create_only_properties = frozenset({"TableName", "KeySchema", "LocalSecondaryIndexes"})
    delete_call = ("dynamodb", "delete_table", "TableName")

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the table, then write the settings that CreateTable does not have."""
        name = request.choose_name("TableName", 255)
        settings = remove_keys(request.properties, "TableName", "SSESpecification", *_DISABLED_SETTINGS)
        if "SSESpecification" in request.properties:
            encryption = request.properties["SSESpecification"]
            settings["SSESpecification"] = rename_keys(encryption, {"SSEEnabled": "Enabled"})
        table = request.get_client("dynamodb").create_table(TableName=name, **settings)["TableDescription"]
        attributes = rename_keys(select_keys(table, "TableArn", "LatestStreamArn"), _ATTRIBUTE_NAMES)
        resource = request.record_partial(name, **attributes)
        self._write_settings(request, name, request.properties)
        return resource

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Update the settings that can change."""
        changes = request.select_changes(
            "BillingMode", "ProvisionedThroughput", "DeletionProtectionEnabled", "StreamSpecification"
        )
        if changes:
            request.get_client("dynamodb").update_table(TableName=request.physical_id, **changes)
        # DynamoDB needs the name of the attribute to disable the time to live.
        disabled_settings = {
            key: (dict(request.old_properties[key]) if key == "TimeToLiveSpecification" else {}) | settings
            for key, settings in _DISABLED_SETTINGS.items()
            if key in request.removed_properties
        }
        settings = disabled_settings | request.select_changes(*_DISABLED_SETTINGS)
        self._write_settings(request, request.physical_id, settings)
        return request.resource

    def _write_settings(self, request: ResourceRequest, name: str, properties: Properties) -> None:
        dynamodb = request.get_client("dynamodb")
        if "TimeToLiveSpecification" in properties:
            dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=properties["TimeToLiveSpecification"])
        if "PointInTimeRecoverySpecification" in properties:
            specification = properties["PointInTimeRecoverySpecification"]
            dynamodb.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=specification)


_ATTRIBUTE_NAMES: Final = {"TableArn": "Arn", "LatestStreamArn": "StreamArn"}


class ParameterProvider(PutResourceProvider):
    """AWS::SSM::Parameter."""

    create_only_properties = frozenset({"Name"})
    delete_call = ("ssm", "delete_parameter", "Name")

    def write(self, request: ResourceRequest) -> PhysicalResource:
        """Write the parameter."""
        name, properties = request.choose_name("Name"), request.properties
        settings = select_keys(properties, "Type", "Value", "Description", "AllowedPattern", "Tier", "DataType")
        request.get_client("ssm").put_parameter(Name=name, Overwrite=bool(request.physical_id), **settings)
        return build_resource(name, Type=properties["Type"], Value=properties["Value"])


class KeyProvider(PutResourceProvider):
    """AWS::KMS::Key."""

    def write(self, request: ResourceRequest) -> PhysicalResource:
        """Create the key, or update its policy."""
        kms, policy = request.get_client("kms"), json.dumps(request.properties.get("KeyPolicy", {}))
        if request.physical_id:
            kms.put_key_policy(KeyId=request.physical_id, PolicyName="default", Policy=policy)
            return request.resource
        key = kms.create_key(Policy=policy, Description=request.properties.get("Description", ""))["KeyMetadata"]
        return build_resource(key["KeyId"], Arn=key["Arn"], KeyId=key["KeyId"])

    def delete(self, request: ResourceRequest) -> None:
        """Schedule the deletion of the key, by default after KMS's shortest waiting period."""
        days = int(request.properties.get("PendingWindowInDays", 7))
        request.get_client("kms").schedule_key_deletion(KeyId=request.physical_id, PendingWindowInDays=days)


class KeyAliasProvider(ResourceProvider):
    """AWS::KMS::Alias."""

    create_only_properties = frozenset({"AliasName"})
    delete_call = ("kms", "delete_alias", "AliasName")

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the alias of the key."""
        name, key_id = request.properties["AliasName"], request.properties["TargetKeyId"]
        request.get_client("kms").create_alias(AliasName=name, TargetKeyId=key_id)
        return build_resource(name)

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Move the alias to another key."""
        key_id = request.properties["TargetKeyId"]
        request.get_client("kms").update_alias(AliasName=request.physical_id, TargetKeyId=key_id)
        return request.resource


class RepositoryProvider(ConfiguredResourceProvider):
    """AWS::ECR::Repository."""

    create_only_properties = frozenset({"RepositoryName"})
    delete_call = ("ecr", "delete_repository", "repositoryName")

    def create_unconfigured(self, request: ResourceRequest) -> PhysicalResource:
        """Create the repository."""
        name = request.properties.get("RepositoryName") or request.generate_name(256).lower()
        mutability = request.properties.get("ImageTagMutability", "MUTABLE")
        ecr = request.get_client("ecr")
        repository = ecr.create_repository(repositoryName=name, imageTagMutability=mutability)["repository"]
        return build_resource(name, Arn=repository["repositoryArn"], RepositoryUri=repository["repositoryUri"])

    def configure(self, request: ResourceRequest, physical_id: str) -> None:
        """Write the policies."""
        ecr = request.get_client("ecr")
        if "RepositoryPolicyText" in request.properties:
            text = json.dumps(request.properties["RepositoryPolicyText"])
            ecr.set_repository_policy(repositoryName=physical_id, policyText=text)
        if "LifecyclePolicy" in request.properties:
            text = request.properties["LifecyclePolicy"]["LifecyclePolicyText"]
            ecr.put_lifecycle_policy(repositoryName=physical_id, lifecyclePolicyText=text)
