"""A real directory on loopback: OpenLDAP's slapd, with people and groups of its own, also encrypted.

    with running_slapd(tmp_path) as directory:
        directory.url, directory.secure_url, directory.ca_file

Everybody's password is PASSWORD. `apt-get install slapd`; without it tests say so, and are left out.
"""

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.databases import PASSWORD
from tests.server import eventually, free_port

PLACES = "/usr/sbin:/usr/bin:/sbin"
SLAPD, SLAPADD, OPENSSL = (shutil.which(name, path=PLACES) for name in ("slapd", "slapadd", "openssl"))
MISSING = "there is no slapd here: apt-get install slapd"
BASE = "dc=example,dc=org"
PEOPLE, GROUPS = f"ou=people,{BASE}", f"ou=groups,{BASE}"
SERVICE, SERVICE_PASSWORD = f"cn=looks people up,{BASE}", "the service's password"

CONFIGURATION = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCertificateFile {folder}/certificate.pem
TLSCertificateKeyFile {folder}/key.pem
pidfile {folder}/pid
{more}
database mdb
maxsize 10485760
suffix "{base}"
directory {folder}/data
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{service}" read by self read by * none
"""
# Passwords in the clear are slapd's default, and these are nobody's.
ENTRIES = f"""
dn: {BASE}
objectClass: dcObject
objectClass: organization
o: Example

dn: {SERVICE}
objectClass: organizationalRole
objectClass: simpleSecurityObject
userPassword: {SERVICE_PASSWORD}

dn: {PEOPLE}
objectClass: organizationalUnit

dn: {GROUPS}
objectClass: organizationalUnit
"""
PERSON = """
dn: uid={dn},{people}
objectClass: inetOrgPerson
uid: {uid}
cn: {uid}
sn: {uid}
userPassword: {password}
"""
GROUP = """
dn: cn={name},{groups}
objectClass: groupOfNames
member: uid={member},{people}
"""


@dataclass(frozen=True)
class RunningDirectory:
    url: str
    secure_url: str
    ca_file: Path
    log: Path

    def asked(self) -> list[str]:
        """Every bind and every search so far, in turn, with the DN that it was for."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return [f"{kind}={dn}" for kind, dn in re.findall(r'(BIND|SRCH) (?:dn|base)="([^"]*)" (?:method|scope)', text)]


@contextmanager
def running_slapd(folder: Path, more: str = "") -> Iterator[RunningDirectory]:
    """`more` goes into slapd's configuration before the database."""
    assert SLAPD
    assert SLAPADD
    assert OPENSSL
    (folder / "data").mkdir()
    files = {"folder": folder, "base": BASE, "service": SERVICE}
    (folder / "slapd.conf").write_text(CONFIGURATION.format(more=more, **files))
    _make_certificate(folder)
    people = {"lin": "lin", "rita": "rita", "smith\\, j": "smith, j", "ada": "ada", "eve": "eve"}
    persons = [PERSON.format(dn=dn, uid=uid, people=PEOPLE, password=PASSWORD) for dn, uid in people.items()]
    groups = [GROUP.format(name="Audit", member="rita", groups=GROUPS, people=PEOPLE)]
    (folder / "entries.ldif").write_text(ENTRIES + "".join(persons + groups))
    configured = ["-f", str(folder / "slapd.conf")]
    subprocess.run([SLAPADD, *configured, "-l", str(folder / "entries.ldif")], check=True, capture_output=True)
    ports = free_port(), free_port()
    urls = f"ldap://127.0.0.1:{ports[0]}", f"ldaps://127.0.0.1:{ports[1]}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([SLAPD, *configured, "-d", "stats", "-h", " ".join(urls)], stdout=log, stderr=log)
    try:
        eventually(lambda: all(_listens(port) for port in ports))
        yield RunningDirectory(*urls, folder / "certificate.pem", folder / "log")
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as asker:
        return asker.connect_ex(("127.0.0.1", port)) == 0


def _make_certificate(folder: Path) -> None:
    assert OPENSSL
    made = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    about = ["-subj", "/CN=directory", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([OPENSSL, "req", *kind, *made, *about], check=True, capture_output=True)
