"""The Dockerfile's steps one by one, since no image is built here: what is copied suffices for what is run."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx

from tests.nginx import answers
from tests.server import ROOT, STOPS_WITHIN_S, eventually, free_port

STEPS = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
INSTALLS = "python -m pip install --no-cache-dir --constraint constraints.txt --editable"
PLANNED = "-m pip install --dry-run --no-deps --no-index --no-build-isolation"  # without fetching and changing anything


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
    (check,), (command,) = of("HEALTHCHECK"), of("CMD")
    looks = [argument.replace(":8080/", f":{port}/") for argument in program(check)]
    assert looks != program(check)

    def healthy() -> bool:
        return subprocess.run(looks, stderr=subprocess.DEVNULL).returncode == 0

    assert not healthy()
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(program(command), cwd=image, env=environment, stdout=log, stderr=log)
    try:
        eventually(lambda: answers(f"http://127.0.0.1:{port}/livez"))
        assert healthy()
        assert httpx.get(f"http://127.0.0.1:{port}/static/qdesk.svg").text == "<svg/>"
        assert httpx.get(f"http://127.0.0.1:{port}/login").status_code == 200
        assert (volume / "data" / "qdesk.db").exists()
        process.terminate()
        assert process.wait(STOPS_WITHIN_S) == 0
    finally:
        process.kill()
        process.wait()
