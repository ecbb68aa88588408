"""Debian's nginx in front of real servers, with the site of deploy/ as it is, but for addresses and certificates."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.server import ROOT, RunningServer, eventually, free_port

PROGRAM = shutil.which("nginx", path="/usr/sbin:/usr/bin")
SITE = ROOT / "deploy" / "nginx.conf"
PARTS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def site_of(*servers: RunningServer, folder: Path, port: int, below: str = "") -> str:
    """The site before these servers, at https://127.0.0.1:`port`; below this path there, if any."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "1",
        *subject,
    ]
    subprocess.run(command, check=True, capture_output=True)
    site = SITE.read_text(encoding="utf-8")
    addresses = [f"server {server.url.removeprefix('http://')};" for server in servers]
    changes = {
        "server 127.0.0.1:8080;": " ".join(addresses),
        "/etc/ssl/certs/qdesk.pem": str(certificate),
        "/etc/ssl/private/qdesk.key": str(key),
        "listen 443": f"listen 127.0.0.1:{port}",
        "listen 80;": f"listen 127.0.0.1:{free_port()};",
    }
    if below:
        changes["    location / {"] = f"    location {below}/ {{"
    for old, new in changes.items():
        assert site.count(old) == 1, old
        site = site.replace(old, new)
    return site


@contextmanager
def nginx(folder: Path, site: str, probe: str) -> Iterator[None]:
    """Run nginx with this site; it is there when the address `probe` answers 200."""
    if not PROGRAM:
        pytest.skip("there is no nginx here")
    main = folder / "nginx.conf"
    temporary = "".join(f"{part}_temp_path {folder}/{part};" for part in PARTS)
    main.write_text(
        f"pid {folder}/pid; error_log {folder}/error.log; daemon off; events {{}} "
        f"http {{ access_log off; {temporary} {site} }}",
        encoding="utf-8",
    )
    with subprocess.Popen([PROGRAM, "-c", str(main), "-p", str(folder)]) as process:
        try:
            eventually(lambda: answers(probe))
            yield
        finally:
            process.terminate()


def answers(url: str) -> bool:
    try:
        return httpx.get(url, verify=False).status_code == 200
    except httpx.TransportError:
        return False
