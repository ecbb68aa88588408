"""POST /: one prompt, one answer, in the shape that programs of the first day know."""

import json
import re

import httpx

from tests.server import RunningServer, bearer, running_server


def ask(server: RunningServer, body: dict[str, object]) -> httpx.Response:
    return httpx.post(server.url, json=body, headers=bearer(), timeout=30)


def test_a_prompt_is_answered(server: RunningServer) -> None:
    answer = ask(server, {"prompt": "你好"})
    assert answer.status_code == 200
    assert answer.json()["response"] == "You said: 你好"
    assert answer.json()["status"] == 200
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", answer.json()["time"])


def test_a_prompt_is_answered_in_pieces(server: RunningServer) -> None:
    answer = ask(server, {"prompt": "你好", "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line.removeprefix("data: ")) for line in answer.text.split("\n\n") if line.startswith("data")]
    *pieces, last = events
    assert "".join(piece["response"] for piece in pieces) == last["response"] == "You said: 你好"
    assert (last["status"], last["finish_reason"]) == (200, "stop")


def test_an_empty_prompt_is_400_in_the_same_shape(server: RunningServer) -> None:
    answer = ask(server, {"prompt": " "})
    assert answer.status_code == answer.json()["status"] == 400
    assert answer.json()["error"]["param"] == "prompt"


def test_a_full_queue_says_so_in_the_words_that_programs_look_for() -> None:
    with running_server(max_concurrent_requests=1, max_waiting_requests=0) as server:
        long = {"prompt": "long", "stream": True}
        with httpx.stream("POST", server.url, json=long, headers=bearer()) as running:
            lines = running.iter_lines()  # kept: the answer is closed with its iterator
            next(lines)
            answer = ask(server, {"prompt": "hello"})
        assert answer.status_code == answer.json()["status"] == 503
        assert answer.json()["response"] == "503HOT！LLM服务器推理繁忙，请稍后再试"
        assert int(answer.headers["retry-after"]) >= 1


def test_the_servers_system_prompt_is_part_of_what_is_logged(server: RunningServer) -> None:
    id = ask(server, {"prompt": "hello"}).headers["x-request-id"]
    ((messages,),) = server.rows("select messages from exchanges where id = ?", id)
    assert [message["role"] for message in json.loads(messages)] == ["system", "user"]
