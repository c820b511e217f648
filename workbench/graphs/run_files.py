"""Files in a job's directory by which its home and workers meet, and the certificate they share.

    dask/key.pem, cert.pem   made once a job: scheduler and workers know one another by it
    dask/scheduler.json      written by the home when its scheduler listens
    dask/<worker>.log        what a worker's own libraries print
    dask/<worker>.running    what a worker is computing; it stays there when the worker dies
    dask/refused             why a GPU worker would not work
    dask/crossings/<n>/      what the home gave to its workers, see `run_crossing.py`

Whoever holds the key can run code in the job; the directory is 0700 and the files are 0600.
"""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_LIFE: Final = dt.timedelta(days=365)


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The paths of one job.

    Args:
        job: The job's directory.
    """

    job: Path

    @property
    def directory(self) -> Path:
        """The folder of all of them."""
        return self.job / "dask"

    @property
    def key(self) -> Path:
        """The private key, PEM."""
        return self.directory / "key.pem"

    @property
    def certificate(self) -> Path:
        """The certificate, PEM; it signs itself."""
        return self.directory / "cert.pem"

    @property
    def scheduler(self) -> Path:
        """Where the scheduler listens: JSON with `address`, as Dask's own workers read it."""
        return self.directory / "scheduler.json"

    @classmethod
    def of_worker(cls, local_directory: Path) -> RunFiles:
        """Return the job's paths as seen from a Dask worker's own directory."""
        return cls(next(one.parent for one in local_directory.parents if one.name == "dask"))

    @property
    def refused(self) -> Path:
        """Why a GPU worker would not work; absent where all did."""
        return self.directory / "refused"

    def log(self, worker: str) -> Path:
        """A worker's log."""
        return self.directory / f"{worker}.log"

    def running(self, worker: str) -> Path:
        """What a worker is computing: a mark, or nothing."""
        return self.directory / f"{worker}.running"

    def crossing(self, number: int) -> Path:
        """The directory of a crossing."""
        return self.directory / "crossings" / str(number)


def make_certificate(files: RunFiles) -> None:
    """Make the job's key and certificate unless they are there."""
    if files.certificate.exists():
        return
    files.directory.mkdir(mode=0o700, exist_ok=True)
    key, certificate = make_pair()
    _write(files.key, key)
    _write(files.certificate, certificate)


def make_pair() -> tuple[bytes, bytes]:
    """Return a new key and a certificate that signs itself, PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "gpu-workbench job")])
    now = dt.datetime.now(tz=dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    return (
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain),
        certificate.public_bytes(pem),
    )


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_suffix(".tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    temporary.rename(path)
