"""A certificate authority for one control plane and its certificates; they live as long as the control plane."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALIDITY_PERIOD: Final = timedelta(days=2)
_ADDRESSES: Final = ("127.0.0.1", "10.0.0.1")
_HOSTS: Final = ("localhost", "kubernetes.default.svc")


def write_certificates(folder: Path) -> None:
    """Write ca.crt, server.crt, server.key, accounts.key and accounts.pub into *folder*."""
    now = datetime.now(UTC)
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = (
        _build_certificate("joiner-test-ca", "joiner-test-ca", key=authority_key, now=now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    names = [*map(x509.DNSName, _HOSTS), *(x509.IPAddress(ip_address(address)) for address in _ADDRESSES)]
    server = (
        _build_certificate("kube-apiserver", "joiner-test-ca", key=server_key, now=now)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    accounts = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    folder.joinpath("ca.crt").write_bytes(authority.public_bytes(Encoding.PEM))
    folder.joinpath("server.crt").write_bytes(server.public_bytes(Encoding.PEM))
    folder.joinpath("server.key").write_bytes(_encode_private_key(server_key))
    folder.joinpath("accounts.key").write_bytes(_encode_private_key(accounts))
    folder.joinpath("accounts.pub").write_bytes(
        accounts.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )


def _build_certificate(
    subject: str, issuer: str, *, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _VALIDITY_PERIOD)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _encode_private_key(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
