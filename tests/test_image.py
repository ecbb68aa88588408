"""The Dockerfile's steps one by one, since no image is built here: what is copied suffices for what is run.

Where root runs the tests, the image's account is made too, and the server runs as that one.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.nginx import answers
from tests.server import ROOT, STOPS_WITHIN_S, eventually, free_port

STEPS = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
INSTALLS = "python -m pip install --no-cache-dir --constraint constraints.txt --editable"
PLANNED = "-m pip install --dry-run --no-deps --no-index --no-build-isolation"  # without fetching and changing anything
# To read what is root's own, since Python and the tests' folder may be, for access(2) too; not to write there.
READS = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "--securebits=+no_setuid_fixup")


@dataclass(frozen=True)
class Account:
    uid: int
    gid: int
    home: Path

    @property
    def runs(self) -> list[str]:
        """What stands before a command that is to run as this account."""
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups", *READS]


def of(instruction: str, steps: str = STEPS) -> list[str]:
    """What stands behind each such instruction."""
    return re.findall(rf"^{instruction} (.+)$", steps, re.MULTILINE)


def program(step: str) -> list[str]:
    """The command that a step names as a list, with this Python."""
    python, *arguments = json.loads(step[step.index("[") :])
    assert python == "python"
    return [sys.executable, *arguments]


def copy_into(image: Path, steps: str = STEPS) -> Path:
    image.mkdir()
    for step in of("COPY", steps):
        *sources, target = step.split()
        for source in (ROOT / source for source in sources):
            if source.is_dir():
                shutil.copytree(source, image / target)
            else:
                shutil.copy(source, image / target)
    return image


def account_with_a_folder(system: Path, volume: Path) -> Account | None:
    """Take the step that makes both, with `system` for / and `volume` for its folder; None where that may not be."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("useradd", "setpriv"))):
        return None
    if subprocess.run(["setpriv", *READS, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        return None
    (system / "etc").mkdir(parents=True)
    for name in ("passwd", "group", "shadow", "gshadow"):
        (system / "etc" / name).touch()
    (step,), (user,), (folder,) = [step for step in of("RUN") if "useradd" in step], of("USER"), of("VOLUME")
    adds, installs = step.split(" && ")
    subprocess.run(adds.replace("useradd", f"useradd --prefix {system}"), shell=True, check=True)
    name, _, uid, gid, _, home, _ = (system / "etc" / "passwd").read_text().strip().split(":")
    assert name == user
    assert re.search(rf"^{user}:.*:{gid}:", (system / "etc" / "group").read_text()), "its group has its name too"
    by_number = installs.replace(f"-o {user} -g {user}", f"-o {uid} -g {gid}").replace(f" {folder}", f" {volume}")
    subprocess.run(by_number, shell=True, check=True)
    return Account(int(uid), int(gid), system / home.lstrip("/"))


def owned_by(account: Account, folder: Path) -> list[Path]:
    return [path for path in (folder, *folder.rglob("*")) if path.stat().st_uid == account.uid]


def test_packages_are_installed_as_the_makefile_does_from_what_was_copied_before(tmp_path: Path) -> None:
    image = copy_into(tmp_path / "image", STEPS.partition("\nRUN ")[0])
    (install,) = [step for step in of("RUN") if step.startswith(INSTALLS)]
    assert INSTALLS.replace("python", "$(BIN)/python").replace("--no-cache-dir ", "") in (ROOT / "Makefile").read_text()
    planned = install.replace("python -m pip install", f"{sys.executable} {PLANNED}")
    made = subprocess.run(planned, shell=True, cwd=image, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert "Would install qdesk" in made.stdout
    assert "does not provide the extra" not in made.stderr


def test_every_step_that_is_run_is_shell() -> None:
    assert len(of("RUN")) > 2
    for step in of("RUN"):
        subprocess.run(["sh", "-n", "-c", step], check=True)


def test_what_is_copied_serves_with_the_images_settings_is_found_healthy_and_stops(tmp_path: Path) -> None:
    image, volume, port = copy_into(tmp_path / "image"), tmp_path / "volume", free_port()
    (image / "ui" / "static" / "qdesk.svg").write_text("<svg/>")  # which only this copy has
    (settings,) = of("ENV")
    environment = {
        name: value.replace(of("VOLUME")[0], str(volume), 1)
        for name, _, value in (pair.partition("=") for pair in settings.split())
    }
    environment |= {"PATH": "/usr/bin:/bin", "QDESK_PORT": str(port), "QDESK_BACKEND": "scripted"}
    account = account_with_a_folder(tmp_path / "system", volume)
    runs = account.runs if account else []
    environment |= {"HOME": str(account.home)} if account else {}
    (check,), (command,) = of("HEALTHCHECK"), of("CMD")
    looks = [argument.replace(":8080/", f":{port}/") for argument in program(check)]
    assert looks != program(check)

    def healthy() -> bool:
        return subprocess.run([*runs, *looks], stderr=subprocess.DEVNULL).returncode == 0

    assert not healthy()
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*runs, *program(command)], cwd=image, env=environment, stdout=log, stderr=log)
    try:
        eventually(lambda: answers(f"http://127.0.0.1:{port}/livez"))
        assert healthy()
        assert httpx.get(f"http://127.0.0.1:{port}/static/qdesk.svg").text == "<svg/>"
        assert httpx.get(f"http://127.0.0.1:{port}/login").status_code == 200
        assert (volume / "data" / "qdesk.db").exists()
        if account:
            assert (volume.stat().st_mode & 0o777, owned_by(account, volume)[:1]) == (0o700, [volume])
            assert set(owned_by(account, volume)) == {volume, *volume.rglob("*")}
            assert owned_by(account, image) == [], "its code is not its own to change"
        process.terminate()
        assert process.wait(STOPS_WITHIN_S) == 0
    finally:
        process.kill()
        process.wait()
