"""Schemathesis reads /openapi.json and asks a real server whatever that allows, and what it does not.

No 500, no status or content type that is not described, no answer of another shape than described, no key that is not
asked for, and a method that does not exist is told which do.
"""

import subprocess
from pathlib import Path

from tests.clients.conftest import needed
from tests.clients.environments import command
from tests.server import API_KEY, running_server

CONFIGURATION = Path(__file__).parent / "schemathesis.toml"


def test_the_api_is_as_it_is_described(tmp_path: Path) -> None:
    needed("schemathesis")
    with running_server(api_rate_limit="", request_timeout_s=20) as server:
        run = [str(command("schemathesis", "schemathesis")), "--config-file", str(CONFIGURATION), "run"]
        asked = [*run, f"{server.url}/openapi.json", "--header", f"Authorization: Bearer {API_KEY}"]
        report = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
        assert report.returncode == 0, report.stdout + report.stderr
        assert "13 selected / 13 total" in report.stdout
        assert "Traceback" not in server.output()
        assert server.rows("select count(*) from exchanges where status = 'done'") >= [(10,)]  # it got to answers
