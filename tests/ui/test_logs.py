"""The server's log: a line a request, nothing forged, nothing secret, as text and as JSON."""

import io
import json
import re

import httpx
import pytest
from loguru import logger

from tests.server import API_KEY, PASSWORD, bearer, eventually, key_of, running_server
from ui.logs import log_in_one_place

FORGED = "2026-01-01 00:00:00.000+00:00 INFO    all is well"
SECRET_PROMPT = "my salary is 12345 and nobody may know"
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d [A-Z]+ +\S|    \| ")


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_text_can_begin_a_line(form: str) -> None:
    out = io.StringIO()
    log_in_one_place(form, out)  # type: ignore[arg-type]  # one of the two
    logger.warning("sign-in refused for {}", f"ada\r\n{FORGED}\u2028{FORGED}\x1b[2K\x85x")
    try:
        raise ValueError(f"odd\n{FORGED}")
    except ValueError:
        logger.exception("it failed")
    log_in_one_place()
    lines = out.getvalue().splitlines()
    assert not [line for line in lines if line.startswith(FORGED)]
    assert "\x1b" not in out.getvalue()
    if form == "json":
        assert len(lines) == 2
        assert "ValueError" in json.loads(lines[1])["traceback"]
    else:
        assert all(LINE.match(line) for line in lines), lines


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_request_is_one_line_without_prompt_key_or_password(form: str) -> None:
    with running_server(accounts={"ada": "staff"}, log_format=form) as server:
        question = {"messages": [{"role": "user", "content": SECRET_PROMPT}], "metadata": {"a": "secret metadata"}}
        with httpx.Client(base_url=server.url, headers=bearer(key_of("ada")), timeout=60) as program:
            answer = program.post("/v1/chat/completions?key=in-the-query", json=question)
            for bad in (SECRET_PROMPT.encode(), b'{"prompt": 3, "x": "' + SECRET_PROMPT.encode() + b'"}'):
                assert program.post("/v1/completions", content=bad).status_code == 400
            failing = {"messages": [{"role": "user", "content": f"fail midway {SECRET_PROMPT}"}]}
            assert program.post("/v1/chat/completions", json=failing).status_code == 500
        with server.sign_in():
            pass
        id = answer.json()["id"].removeprefix("chatcmpl-")
        eventually(lambda: server.output().count("/login") >= 2)
        told = server.output()
    assert answer.status_code == 200
    lines = [line for line in told.splitlines() if id in line]
    assert len(lines) == 1
    for secret in (SECRET_PROMPT, "salary", "secret metadata", API_KEY, key_of("ada"), PASSWORD, "in-the-query"):
        assert secret not in told
    if form == "json":
        facts = json.loads(lines[0])
        assert {"request", "person", "method", "path", "status", "ms", "time", "level"} <= set(facts)
        assert (facts["method"], facts["path"], facts["status"]) == ("POST", "/v1/chat/completions", 200)
        assert len(facts["person"]) == 32
    else:
        assert re.search(rf"INFO    {id} [0-9a-f]{{32}} POST /v1/chat/completions 200 \d+ ms$", lines[0])
