"""A certificate for loopback, the TLS context of its server, and the CA data for clients."""

import ssl
from base64 import b64encode
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for 127.0.0.1 that is its own authority, in one file."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "joiner")])
    signed_certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    file.write_bytes(key.private_bytes(pem, form, plain) + signed_certificate.public_bytes(pem))
    return file


def build_server_context(certificate: Path) -> ssl.SSLContext:
    """Return the TLS context of a server that presents *certificate*."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def encode_authority(certificate: Path) -> str:
    """Return the CA data for clients that trust *certificate*: PEM in base64, as in EKS and kubeconfigs."""
    text = certificate.read_bytes()
    return b64encode(text[text.index(b"-----BEGIN CERTIFICATE") :]).decode()
