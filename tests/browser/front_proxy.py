"""A proxy before the Jupyter server: it ends TLS, or refuses websockets."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

REFUSAL = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class FrontProxy(ThreadingTCPServer):
    """Passes bytes on to a server on this host.

    Args:
        target_port: Where the server listens.
        tls: Ends TLS with this; None for plain HTTP.
        refuse_upgrade: Whether each connection that begins with a websocket's handshake (which
            browsers send over a connection of its own) is answered with 403.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self, target_port: int, *, tls: ssl.SSLContext | None, refuse_upgrade: bool
    ) -> None:
        super().__init__(("127.0.0.1", 0), Pass)
        self.target_port = target_port
        self.tls = tls
        self.refuse_upgrade = refuse_upgrade
        self.refused = 0
        self.upgraded = 0

    @property
    def origin(self) -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.server_address[1]}"


class Pass(BaseRequestHandler):
    """One connection."""

    server: FrontProxy

    def handle(self) -> None:
        with suppress(OSError), self.decrypted() as front:
            head = front.recv(65536)
            if b"upgrade: websocket" in head.lower():
                if self.server.refuse_upgrade:
                    self.server.refused += 1
                    front.sendall(REFUSAL)
                    return
                self.server.upgraded += 1
            with socket.create_connection(("127.0.0.1", self.server.target_port)) as back:
                back.sendall(head)
                answering = threading.Thread(target=pump, args=(back, front), daemon=True)
                answering.start()
                pump(front, back)
                answering.join()

    def decrypted(self) -> socket.socket:
        if self.server.tls is None:
            return self.request
        return self.server.tls.wrap_socket(self.request, server_side=True)


def pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def certificate(place: Path) -> ssl.SSLContext:
    """Make a certificate for 127.0.0.1 that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    file = place / "proxy.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + built.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@contextmanager
def front_proxy(
    target_port: int, *, tls: ssl.SSLContext | None = None, refuse_upgrade: bool = False
) -> Iterator[FrontProxy]:
    """Run a proxy until the block ends."""
    with FrontProxy(target_port, tls=tls, refuse_upgrade=refuse_upgrade) as proxy:
        serving = threading.Thread(target=proxy.serve_forever, daemon=True)
        serving.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            serving.join()
