"""Buckets, tables, parameters, keys and repositories."""

import json
from typing import Any, Final

from sim.account.kinds.kind import Kind, Made, Place, Said, Setting, only, renamed, without


class Bucket(Kind):
    """AWS::S3::Bucket."""

    fixed = frozenset({"BucketName"})

    def create(self, at: Place, said: Said) -> Made:
        """Make it, then say the rest."""
        name, s3, region = said.get("BucketName") or at.named(63).lower(), at.client("s3"), at.services.region
        where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        s3.create_bucket(Bucket=name, **where)
        at.begun.append(Made(physical_id=name))
        self._write(at, name, said)
        attributes = {
            "Arn": f"arn:aws:s3:::{name}",
            "DomainName": f"{name}.s3.amazonaws.com",
            "RegionalDomainName": f"{name}.s3.{region}.amazonaws.com",
            "WebsiteURL": f"http://{name}.s3-website-{region}.amazonaws.com",
        }
        return Made(physical_id=name, attributes=attributes)

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Say it anew; what is no longer said is taken back."""
        s3, name = at.client("s3"), made.physical_id
        gone = old.keys() - new.keys()
        if "LifecycleConfiguration" in gone:
            s3.delete_bucket_lifecycle(Bucket=name)
        if "BucketEncryption" in gone:
            s3.delete_bucket_encryption(Bucket=name)
        if "PublicAccessBlockConfiguration" in gone:
            s3.delete_public_access_block(Bucket=name)
        self._write(at, name, new)
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away, if it is empty."""
        del said
        at.client("s3").delete_bucket(Bucket=made.physical_id)

    def _write(self, at: Place, name: str, said: Said) -> None:
        s3 = at.client("s3")
        if "VersioningConfiguration" in said:
            s3.put_bucket_versioning(Bucket=name, VersioningConfiguration=said["VersioningConfiguration"])
        if "BucketEncryption" in said:
            names = {"ServerSideEncryptionByDefault": "ApplyServerSideEncryptionByDefault"}
            rules = [renamed(one, names) for one in said["BucketEncryption"]["ServerSideEncryptionConfiguration"]]
            s3.put_bucket_encryption(Bucket=name, ServerSideEncryptionConfiguration={"Rules": rules})
        if "PublicAccessBlockConfiguration" in said:
            s3.put_public_access_block(
                Bucket=name, PublicAccessBlockConfiguration=said["PublicAccessBlockConfiguration"]
            )
        if "LifecycleConfiguration" in said:
            rules = [_lifecycle(one) for one in said["LifecycleConfiguration"]["Rules"]]
            s3.put_bucket_lifecycle_configuration(Bucket=name, LifecycleConfiguration={"Rules": rules})
        if "OwnershipControls" in said:
            s3.put_bucket_ownership_controls(Bucket=name, OwnershipControls=said["OwnershipControls"])
        if "Tags" in said:
            s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": said["Tags"]})


def _lifecycle(said: Said) -> dict[str, Any]:
    rule = only(said, "Status", "AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration")
    if "ExpirationInDays" in said:
        rule["Expiration"] = {"Days": int(said["ExpirationInDays"])}
    return rule | {"Filter": {"Prefix": said.get("Prefix", "")}} | ({"ID": said["Id"]} if "Id" in said else {})


class BucketPolicy(Setting):
    """AWS::S3::BucketPolicy."""

    fixed = frozenset({"Bucket"})

    def write(self, at: Place, said: Said, before: Made | None) -> Made:
        """Write the document."""
        del before
        at.client("s3").put_bucket_policy(Bucket=said["Bucket"], Policy=json.dumps(said["PolicyDocument"]))
        return Made(physical_id=said["Bucket"])

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Leave the bucket without."""
        del said
        at.client("s3").delete_bucket_policy(Bucket=made.physical_id)


class Table(Kind):
    """AWS::DynamoDB::Table."""

    fixed = frozenset({"TableName", "KeySchema", "LocalSecondaryIndexes"})
    _LATER: Final = ("PointInTimeRecoverySpecification", "TimeToLiveSpecification")

    def create(self, at: Place, said: Said) -> Made:
        """Make it, then say the rest."""
        name = said.get("TableName") or at.named(255)
        rest = without(said, "TableName", "SSESpecification", *self._LATER)
        if "SSESpecification" in said:
            rest["SSESpecification"] = renamed(said["SSESpecification"], {"SSEEnabled": "Enabled"})
        made = at.client("dynamodb").create_table(TableName=name, **rest)["TableDescription"]
        at.begun.append(Made(physical_id=name))
        self._write(at, name, said)
        attributes = {"Arn": made["TableArn"]} | (
            {"StreamArn": made["LatestStreamArn"]} if "LatestStreamArn" in made else {}
        )
        return Made(physical_id=name, attributes=attributes)

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Change what can be changed."""
        changed = only(new, "BillingMode", "ProvisionedThroughput", "DeletionProtectionEnabled", "StreamSpecification")
        said = {key: value for key, value in changed.items() if old.get(key) != value}
        if said:
            at.client("dynamodb").update_table(TableName=made.physical_id, **said)
        off = {key: _OFF[key] for key in self._LATER if key in old.keys() - new.keys()}
        if "TimeToLiveSpecification" in off:
            # DynamoDB wants to hear which attribute no longer counts.
            off["TimeToLiveSpecification"] = {**old["TimeToLiveSpecification"], "Enabled": False}
        self._write(
            at,
            made.physical_id,
            off | {key: one for key, one in only(new, *self._LATER).items() if old.get(key) != one},
        )
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away with all rows."""
        del said
        at.client("dynamodb").delete_table(TableName=made.physical_id)

    def _write(self, at: Place, name: str, said: Said) -> None:
        dynamodb = at.client("dynamodb")
        if "TimeToLiveSpecification" in said:
            dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=said["TimeToLiveSpecification"])
        if "PointInTimeRecoverySpecification" in said:
            wanted = said["PointInTimeRecoverySpecification"]
            dynamodb.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=wanted)


_OFF: Final[dict[str, Any]] = {
    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": False},
    "TimeToLiveSpecification": {},
}


class Parameter(Setting):
    """AWS::SSM::Parameter."""

    fixed = frozenset({"Name"})

    def write(self, at: Place, said: Said, before: Made | None) -> Made:
        """Write its value."""
        name = said.get("Name") or at.named()
        rest = only(said, "Type", "Value", "Description", "AllowedPattern", "Tier", "DataType")
        at.client("ssm").put_parameter(Name=name, Overwrite=before is not None, **rest)
        return Made(physical_id=name, attributes={"Type": said["Type"], "Value": said["Value"]})

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away."""
        del said
        at.client("ssm").delete_parameter(Name=made.physical_id)


class Key(Setting):
    """AWS::KMS::Key."""

    def write(self, at: Place, said: Said, before: Made | None) -> Made:
        """Make it, or change its policy."""
        kms, policy = at.client("kms"), json.dumps(said.get("KeyPolicy", {}))
        if before is not None:
            kms.put_key_policy(KeyId=before.physical_id, PolicyName="default", Policy=policy)
            return before
        made = kms.create_key(Policy=policy, Description=said.get("Description", ""))["KeyMetadata"]
        return Made(physical_id=made["KeyId"], attributes={"Arn": made["Arn"], "KeyId": made["KeyId"]})

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Have it deleted when KMS's shortest notice is over."""
        at.client("kms").schedule_key_deletion(
            KeyId=made.physical_id, PendingWindowInDays=int(said.get("PendingWindowInDays", 7))
        )


class KeyAlias(Kind):
    """AWS::KMS::Alias."""

    fixed = frozenset({"AliasName"})

    def create(self, at: Place, said: Said) -> Made:
        """Name the key."""
        at.client("kms").create_alias(AliasName=said["AliasName"], TargetKeyId=said["TargetKeyId"])
        return Made(physical_id=said["AliasName"])

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Name another one so."""
        del old
        at.client("kms").update_alias(AliasName=made.physical_id, TargetKeyId=new["TargetKeyId"])
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take the name away."""
        del said
        at.client("kms").delete_alias(AliasName=made.physical_id)


class Repository(Kind):
    """AWS::ECR::Repository."""

    fixed = frozenset({"RepositoryName"})

    def create(self, at: Place, said: Said) -> Made:
        """Make it, then say the rest."""
        name = said.get("RepositoryName") or at.named(256).lower()
        made = at.client("ecr").create_repository(
            repositoryName=name, imageTagMutability=said.get("ImageTagMutability", "MUTABLE")
        )["repository"]
        at.begun.append(Made(physical_id=name))
        self._write(at, name, said)
        attributes = {"Arn": made["repositoryArn"], "RepositoryUri": made["repositoryUri"]}
        return Made(physical_id=name, attributes=attributes)

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Say it anew."""
        del old
        self._write(at, made.physical_id, new)
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away, if it is empty."""
        del said
        at.client("ecr").delete_repository(repositoryName=made.physical_id)

    def _write(self, at: Place, name: str, said: Said) -> None:
        if "RepositoryPolicyText" in said:
            text = json.dumps(said["RepositoryPolicyText"])
            at.client("ecr").set_repository_policy(repositoryName=name, policyText=text)
        if "LifecyclePolicy" in said:
            text = said["LifecyclePolicy"]["LifecyclePolicyText"]
            at.client("ecr").put_lifecycle_policy(repositoryName=name, lifecyclePolicyText=text)
