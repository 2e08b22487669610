"""The EKS token: its content, and how long it is cached."""

from base64 import urlsafe_b64decode
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest

from shared.errors import Forbidden
from shared.kubernetes.eks_token import EksToken, build_eks_token, build_presigned_url

NOW = datetime(2026, 11, 21, 8, 0, 5, tzinfo=UTC)


def make_session(session_token: str | None, key: str = "AKIDEXAMPLE") -> boto3.Session:
    return boto3.Session(key, "secret/key+", session_token)


KEYS = make_session("session/token==").get_credentials().get_frozen_credentials()


def decode_token(token: str) -> str:
    prefix, _, body = token.partition("k8s-aws-v1.")
    assert prefix == ""
    return urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode()


def test_eks_token_is_a_presigned_get_caller_identity_url() -> None:
    url = urlsplit(decode_token(build_eks_token(KEYS, cluster="shop", region="eu-west-1", now=NOW)))
    query = {name: value for name, [value] in parse_qs(url.query).items()}
    signature = query.pop("X-Amz-Signature")
    assert (url.scheme, url.netloc, url.path) == ("https", "sts.eu-west-1.amazonaws.com", "/")
    assert query == {
        "Action": "GetCallerIdentity",
        "Version": "2011-06-15",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": "AKIDEXAMPLE/20261121/eu-west-1/sts/aws4_request",
        "X-Amz-Date": "20261121T080005Z",
        "X-Amz-Expires": "60",
        "X-Amz-Security-Token": "session/token==",
        "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
    }
    assert len(signature) == 64


def test_eks_token_has_no_base64_padding() -> None:
    tokens = [build_eks_token(KEYS, cluster="a" * size, region="us-east-1", now=NOW) for size in range(1, 4)]
    assert not any("=" in token for token in tokens)


@pytest.mark.parametrize("session_token", [None, "session/token=="], ids=["user credentials", "role credentials"])
def test_presigned_url_matches_the_one_from_boto(session_token: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: NOW)
    session = make_session(session_token)
    sts = session.client("sts", region_name="eu-west-1", endpoint_url="https://sts.eu-west-1.amazonaws.com")
    name = "before-sign.sts.GetCallerIdentity"
    sts.meta.events.register(name, lambda request, **_: request.headers.add_header("x-k8s-aws-id", "shop"))
    boto_url = sts.generate_presigned_url("get_caller_identity", ExpiresIn=60, HttpMethod="GET")
    keys = session.get_credentials().get_frozen_credentials()
    own_url = build_presigned_url(keys, cluster="shop", region="eu-west-1", now=NOW)
    assert parse_qs(urlsplit(own_url).query) == parse_qs(urlsplit(boto_url).query)


def test_eks_token_depends_on_cluster_and_region() -> None:
    tokens = {
        build_eks_token(KEYS, cluster=cluster, region=region, now=NOW)
        for cluster, region in (("a", "us-east-1"), ("b", "us-east-1"), ("a", "eu-west-1"))
    }
    assert len(tokens) == 3


def test_china_regions_use_their_own_sts_endpoint() -> None:
    assert build_presigned_url(KEYS, cluster="a", region="cn-north-1", now=NOW).startswith(
        "https://sts.cn-north-1.amazonaws.com.cn/"
    )


class ManualClock:
    """A clock that is set manually."""

    now = NOW

    def __call__(self) -> datetime:
        return self.now


def test_eks_token_is_cached_for_fourteen_minutes() -> None:
    clock, session = ManualClock(), make_session(None)
    token = EksToken(session, cluster="shop", region="us-east-1", clock=clock)
    first = token()
    clock.now = NOW + timedelta(minutes=14, seconds=-1)
    assert token() == first
    clock.now = NOW + timedelta(minutes=14)
    assert token() != first


def test_rejected_eks_token_is_signed_again() -> None:
    clock = ManualClock()
    token = EksToken(make_session(None), cluster="shop", region="us-east-1", clock=clock)
    first = token()
    clock.now = NOW + timedelta(minutes=1)
    assert token() == first
    token.renew()
    assert token() != first


def test_new_credentials_produce_a_new_eks_token(monkeypatch: pytest.MonkeyPatch) -> None:
    session = make_session(None)
    token = EksToken(session, cluster="shop", region="us-east-1", clock=ManualClock())
    first = token()
    monkeypatch.setattr(session, "get_credentials", make_session(None, "AKIDOTHER").get_credentials)
    assert token() != first


def test_missing_credentials_raise_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    session = make_session(None)
    monkeypatch.setattr(session, "get_credentials", lambda: None)
    with pytest.raises(Forbidden, match="shop"):
        EksToken(session, cluster="shop", region="us-east-1", clock=ManualClock())()
