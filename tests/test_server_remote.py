"""Another server that dies in the midst of answers, behind the real one: what programs are told, what the log keeps."""

import json
from contextlib import ExitStack
from typing import Any

import httpx

from tests.server import API_KEY, RunningServer, bearer, eventually, running_server
from tests.ui.test_shutdown import CHAT, stream

IMPATIENT = """
import main
from engine.backends.remote import RemoteBackend
RemoteBackend.__init__.__kwdefaults__["ask_again_s"] = 0.2
main.main()
"""


def ask(server: RunningServer, text: str) -> httpx.Response:
    question = {"messages": [{"role": "user", "content": text}]}
    return httpx.post(server.url + CHAT, json=question, headers=bearer(), timeout=60)


def ready(server: RunningServer) -> bool:
    return httpx.get(server.url + "/readyz").status_code == 200


def test_an_engine_that_dies_in_an_answer_ends_it_with_a_sentence_and_is_found_when_it_is_back() -> None:
    with ExitStack() as stack:
        engine = stack.enter_context(running_server())
        settings: dict[str, Any] = {
            "backend": "remote",
            "openai_base_url": f"{engine.url}/v1",
            "openai_api_key": API_KEY,
        }
        server = stack.enter_context(running_server(program=("-c", IMPATIENT), **settings))
        answers = [stream(server, "long", stack) for _ in range(2)]
        lines = [answer.iter_lines() for _, answer in answers]
        for events in lines:
            assert any("word5" in event for event in events)  # as far as that
        engine.process.kill()
        engine.process.wait()
        for (id, _), events in zip(answers, lines, strict=True):
            *_, told, done = [event.removeprefix("data: ") for event in events if event]
            error = json.loads(told)["error"]
            assert (error["code"], done) == ("engine_error", "[DONE]")
            ((status, said, text),) = server.rows("select status, error, answer from exchanges where id = ?", id)
            assert (status, f"{said} (request {id})") == ("failed", error["message"])
            assert "other server" in said
            assert text.startswith("word0 word1 word2 word3 word4 word5")
        assert httpx.get(server.url + "/readyz").status_code == 503
        refused = ask(server, "is anybody there?")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "engine_failed")
        with running_server(port=int(engine.url.rpartition(":")[2])):
            eventually(lambda: ready(server))
            answer = ask(server, "hello")
            assert answer.json()["choices"][0]["message"]["content"] == "You said: hello"
        assert httpx.get(server.url + "/livez").status_code == 200
