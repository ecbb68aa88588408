"""What is in deploy/ works: nginx in front of a real server, Prometheus with its rules, figures that are served.

The Dockerfile's steps are in tests/test_image.py.
"""

import asyncio
import json
import re
import shutil
import ssl
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from websockets.asyncio.client import connect

from engine.settings import Settings
from tests.nginx import SITE, answers, nginx, site_of
from tests.server import (
    API_KEY,
    PASSWORD,
    ROOT,
    RunningServer,
    bearer,
    eventually,
    free_port,
    running_server,
    sign_in,
)

DEPLOY = ROOT / "deploy"


@pytest.fixture(scope="module")
def behind_nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, str]]:
    """A server, and its address at nginx with the site of deploy/ in front, which comes from an address of its own."""
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORWARDED_ALLOW_IPS", compose()["services"]["qdesk"]["environment"]["FORWARDED_ALLOW_IPS"])
        with running_server(public_url=f"https://127.0.0.1:{port}") as server:
            site = site_of(server, folder=folder, port=port)
            elsewhere = site.replace("proxy_http_version", "proxy_bind 127.0.0.3; proxy_http_version")
            with nginx(folder, elsewhere, f"https://127.0.0.1:{port}/livez"):
                yield server, f"https://127.0.0.1:{port}"


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yml").read_text(encoding="utf-8")))


def test_a_streams_first_piece_comes_through_at_once(behind_nginx: tuple[RunningServer, str]) -> None:
    server, url = behind_nginx
    question = {"messages": [{"role": "user", "content": "long"}], "stream": True}
    with (
        httpx.Client(base_url=url, headers=bearer(), verify=False, timeout=60) as program,
        program.stream("POST", "/v1/chat/completions", json=question) as answer,
    ):
        lines = answer.iter_lines()  # kept: the answer is closed with its iterator
        assert "content-encoding" not in answer.headers, "packed, the pieces would come together at the end"
        assert any("word0" in line for line in lines)
        id = answer.headers["x-request-id"]
        assert server.status_of(id) == "running"  # most of the answer is still to come
    eventually(lambda: server.status_of(id) == "disconnected")  # nginx passes on that nobody reads


async def test_the_socket_comes_through(behind_nginx: tuple[RunningServer, str]) -> None:
    _, url = behind_nginx
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    address = url.replace("https", "wss") + "/v1/chat/ws"
    async with asyncio.timeout(60), connect(address, additional_headers=bearer(), ssl=trusting) as socket:
        await socket.send(json.dumps({"messages": [{"role": "user", "content": "hello"}]}))
        frames = []
        while (frame := await socket.recv()) != "[DONE]":
            frames.append(json.loads(frame))
    assert "".join(frame["choices"][0]["delta"].get("content") or "" for frame in frames) == "You said: hello"


def test_people_sign_in_with_a_cookie_for_https_alone(behind_nginx: tuple[RunningServer, str]) -> None:
    _, url = behind_nginx
    with httpx.Client(base_url=url, verify=False, timeout=60) as browser:
        page = browser.get("/login")
        assert page.headers["strict-transport-security"]
        assert page.headers["content-encoding"] == "gzip"
        token = re.search(r'name="form_token" value="(\w+)"', page.text)
        assert token
        form = {"form_token": token[1], "name": "admin", "password": "correct horse battery", "next": "/"}
        signed_in = browser.post("/login", data=form, headers={"Origin": url})
        assert signed_in.status_code == 303
        assert "secure" in signed_in.headers["set-cookie"].lower()
        assert browser.get("/").status_code == 200


def test_tries_to_sign_in_are_counted_by_the_address_that_nginx_saw(behind_nginx: tuple[RunningServer, str]) -> None:
    server, url = behind_nginx

    def tries(address: str, password: str, *forged: str) -> list[int]:
        """What somebody at this address is answered who says each time that they are elsewhere."""
        at = httpx.HTTPTransport(verify=False, local_address=address)
        with httpx.Client(base_url=url, transport=at, timeout=60) as browser:
            statuses = []
            for elsewhere in forged:
                browser.headers["X-Forwarded-For"] = elsewhere
                statuses.append(sign_in(browser, "admin", password).status_code)
            return statuses

    assert tries("127.0.0.4", "wrong", *(f"10.1.2.{number}" for number in range(6))) == [401] * 5 + [429]
    assert tries("127.0.0.2", PASSWORD, "127.0.0.4") == [303], "a colleague is somebody else"
    assert "sign-in refused for 'admin' from 127.0.0.4" in server.output()


@contextmanager
def running_prometheus(folder: Path, *servers: RunningServer) -> Iterator[httpx.Client]:
    """Debian's, with the configuration of deploy/ and these servers as its targets, but for how often it looks."""
    if not (program := shutil.which("prometheus")):
        pytest.skip("there is no Prometheus here")
    (folder / "key").write_text(API_KEY)
    shutil.copy(DEPLOY / "prometheus-rules.yml", folder)
    text = (DEPLOY / "prometheus.yml").read_text(encoding="utf-8")
    changes = {
        "/etc/prometheus/qdesk.key": str(folder / "key"),
        '["127.0.0.1:8080"]': json.dumps([server.url.removeprefix("http://") for server in servers]),
        "scrape_interval: 15s": "scrape_interval: 1s\n  evaluation_interval: 1s",
    }
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "prometheus.yml").write_text(text)
    address = f"127.0.0.1:{free_port()}"
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen([program, *options, f"--web.listen-address={address}"], stderr=log) as process,
        httpx.Client(base_url=f"http://{address}/api/v1") as asks,
    ):
        try:
            eventually(lambda: answers(f"http://{address}/-/ready"))
            yield asks
        finally:
            process.terminate()


def dashboard() -> list[str]:
    """What its panels ask Prometheus for."""
    panels = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))["panels"]
    asked = [target["expr"].replace("$__rate_interval", "1m") for panel in panels for target in panel["targets"]]
    assert len(asked) > 20
    return asked


def test_prometheus_adds_up_several_processes_and_computes_all_rules_and_panels(
    behind_nginx: tuple[RunningServer, str], tmp_path: Path
) -> None:
    def value(figure: str) -> str | None:
        """The first that Prometheus finds, if any; it must be able to compute it."""
        answer = prometheus.get("/query", params={"query": figure}).json()
        assert answer["status"] == "success", figure
        return next((str(found["value"][1]) for found in answer["data"]["result"]), None)

    def health() -> list[str]:
        return [rule["health"] for rule in prometheus.get("/rules").json()["data"]["groups"][0]["rules"]]

    one, _ = behind_nginx
    with running_server() as other, running_prometheus(tmp_path, one, other) as prometheus:

        def asking(text: str, stream: bool = False) -> AbstractContextManager[httpx.Response]:
            body = {"messages": [{"role": "user", "content": text}], "stream": stream}
            url = other.url + "/v1/chat/completions"
            return httpx.stream("POST", url, json=body, headers=bearer(), timeout=60)

        for text, status in (("a story", 200), ("fail before", 500), ("word " * 5000, 400)):
            with asking(text) as answer:
                assert answer.status_code == status
        with asking("stand still", stream=True):  # and leaves it in the end
            eventually(lambda: value("sum(up)") == "2")
            eventually(lambda: value("sum(qdesk_num_requests_running)") == "1")
            assert value("sum(qdesk_ready)") == "2"
        panels = [figure for figure in dashboard() if value(figure) is None and "_gpu" not in figure]
        eventually(lambda: all(value(figure) is not None for figure in panels))  # two looks make a rate
        eventually(lambda: health() == ["ok"] * 4)


def test_prometheus_in_compose_finds_every_process_by_its_number(
    behind_nginx: tuple[RunningServer, str], tmp_path: Path
) -> None:
    """What `sed` makes of the configuration there is one, and a process answers to its number for whoever has a key."""
    if not (promtool := shutil.which("promtool")):
        pytest.skip("there is no promtool here")
    (program,) = re.findall(
        r"entrypoint: .*(sed -e.*) /etc/prometheus/original.yml", (DEPLOY / "compose.yml").read_text()
    )
    made = subprocess.run(f"{program} {DEPLOY}/prometheus.yml", shell=True, capture_output=True, text=True, check=True)
    assert "{names: [qdesk], type: A, port: 8080}" in made.stdout
    (tmp_path / "key").write_text(API_KEY)
    (tmp_path / "prometheus.yml").write_text(made.stdout.replace("/etc/prometheus/qdesk.key", str(tmp_path / "key")))
    shutil.copy(DEPLOY / "prometheus-rules.yml", tmp_path)
    checked = subprocess.run(
        [promtool, "check", "config", str(tmp_path / "prometheus.yml")], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr

    server, _ = behind_nginx
    by_number = {"Host": "172.18.0.7:8080"}
    assert httpx.get(server.url + "/metrics", headers=bearer() | by_number).status_code == 200
    assert httpx.get(server.url + "/metrics", headers=by_number).status_code == 421
    assert httpx.get(server.url + "/v1/models", headers=bearer() | by_number).status_code == 421


def test_rules_and_dashboard_ask_for_figures_that_there_are() -> None:
    documented = set(re.findall(r"`(qdesk_\w+)`", (ROOT / "docs/api.md").read_text(encoding="utf-8")))
    documented |= {f"{name}_{part}" for name in documented for part in ("bucket", "count", "sum")}
    asked = set()
    for name in ("prometheus-rules.yml", "grafana-dashboard.json"):
        asked |= set(re.findall(r"\bqdesk_\w+", (DEPLOY / name).read_text(encoding="utf-8")))
    assert asked <= documented
    assert len(asked) > 10


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if not (program := shutil.which("systemd-analyze")):
        pytest.skip("there is no systemd-analyze here")
    unit = (DEPLOY / "qdesk.service").read_text(encoding="utf-8")
    python = "/opt/qdesk/.venv/bin/python"
    assert unit.count(python) == 1
    file = tmp_path / "qdesk.service"
    file.write_text(unit.replace(python, sys.executable), encoding="utf-8")
    checked = subprocess.run([program, "verify", "--man=no", str(file)], capture_output=True, text=True)
    assert [line for line in checked.stderr.splitlines() if file.name in line] == []
    assert checked.returncode == 0


def test_compose_has_all_that_a_house_needs_and_nginx_the_site_that_is_tested_here() -> None:
    services = compose()["services"]
    assert set(services) == {"qdesk", "postgres", "nginx", "prometheus", "grafana", "vllm"}
    assert [name for name, service in services.items() if "profiles" in service] == ["vllm"]
    assert {name for service in services.values() for name in service.get("depends_on", ())} <= set(services)
    named = {volume.partition(":")[0] for service in services.values() for volume in service.get("volumes", ())}
    assert {name for name in named if not name.startswith(".")} == set(compose()["volumes"])
    assert "ports" not in services["qdesk"], "it believes whoever reaches it who people are"

    program, _, rest = services["nginx"]["command"][-1].partition(" /etc/nginx/qdesk-site ")
    assert rest == "> /etc/nginx/conf.d/default.conf && exec nginx -g 'daemon off;'"
    made = subprocess.run(f"{program} {SITE}", shell=True, capture_output=True, text=True, check=True).stdout
    assert made == SITE.read_text(encoding="utf-8").replace("server 127.0.0.1:8080;", "server qdesk:8080;")
    assert made.count("qdesk:8080") == 1


def test_the_compose_file_mounts_what_there_is_and_names_settings_that_there_are() -> None:
    text = (DEPLOY / "compose.yml").read_text(encoding="utf-8")
    mounted = set(re.findall(r"[\s\"]\./([\w.-]+)(?=:)", text))
    to_be_made = {"qdesk.key"}  # keys and certificates are the operator's
    assert [name for name in mounted - to_be_made if not (DEPLOY / name).exists()] == []
    known = {f"QDESK_{name.upper()}" for name in Settings.model_fields}
    for name in ("compose.yml", "Dockerfile", "qdesk.service"):
        assert set(re.findall(r"\bQDESK_[A-Z_]+\b", (DEPLOY / name).read_text(encoding="utf-8"))) <= known


def test_condas_environment_has_the_python_and_the_pip_of_the_other_ways() -> None:
    text = (DEPLOY / "environment.yml").read_text(encoding="utf-8")
    environment = yaml.safe_load(text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    python, pip = environment["dependencies"]
    assert python.replace("=", ">=") == f"python{project['requires-python']}"
    assert pip in project["dependencies"]
    assert f"conda activate {environment['name']}" in text
    (install,) = re.findall(r"python (-m pip install .*)", text)
    assert f"$(BIN)/python {install}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
