"""A request that is built is a request that makes sense: what is out of range is refused, by name."""

import math
from typing import Any

import pytest

from engine.errors import ContextOverflow, InvalidRequest
from engine.types import ChatRequest, Message, Sampling, Status, new_id, opening

OUT_OF_RANGE: list[tuple[str, Any]] = [
    ("temperature", -0.1),
    ("temperature", 2.1),
    ("temperature", math.nan),
    ("top_p", 0.0),
    ("top_p", 1.01),
    ("top_k", -1),
    ("repetition_penalty", 0.0),
    ("repetition_penalty", math.inf),
    ("seed", 2**63),
    ("max_tokens", 0),
    ("stop", ("",)),
    ("stop", ("x" * 201,)),
    ("stop", ("x",) * 9),
]

EDGES: list[tuple[str, Any]] = [
    ("temperature", 0.0),
    ("temperature", 2.0),
    ("top_p", 1.0),
    ("top_k", 0),
    ("repetition_penalty", 2.0),
    ("seed", -(2**63)),
    ("max_tokens", 1),
    ("stop", ("x" * 200,) * 8),
]


def _ask(*messages: Message) -> ChatRequest:
    return ChatRequest(messages=messages, person="ada", source="page")


@pytest.mark.parametrize(("name", "value"), OUT_OF_RANGE)
def test_a_sampling_value_out_of_range_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InvalidRequest, match=name) as refused:
        Sampling(**{name: value})  # type: ignore[arg-type]  # one name of many types
    assert refused.value.param == name


@pytest.mark.parametrize(("name", "value"), EDGES)
def test_the_ends_of_each_range_are_inside(name: str, value: object) -> None:
    sampling = Sampling(**{name: value})  # type: ignore[arg-type]  # one name of many types
    assert getattr(sampling, name) == value


def test_the_prompt_is_the_last_message() -> None:
    request = _ask(Message("user", "Hello"), Message("assistant", "Hi"), Message("user", "你好"))
    assert request.prompt == "你好"


def test_an_answer_that_is_gone_on_with_keeps_its_question() -> None:
    request = _ask(Message("user", "Hello"), Message("assistant", "Hi th"))
    assert request.prompt == "Hello"
    assert (opening(request.messages), opening(request.messages[:-1])) == ("Hi th", "")
    assert _ask(Message("assistant", "alone")).prompt == "alone"


@pytest.mark.parametrize("messages", [(), (Message("user", " \n"),)])
def test_a_request_without_a_question_is_refused(messages: tuple[Message, ...]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        _ask(*messages)
    assert refused.value.param == "messages"


def test_an_overflow_names_both_numbers() -> None:
    error = ContextOverflow(5000, 4096)
    assert error.code == "context_length_exceeded"
    assert "5000" in str(error)
    assert "4096" in str(error)


def test_only_queued_and_running_are_not_final() -> None:
    assert {status for status in Status if not status.final} == {Status.QUEUED, Status.RUNNING}


def test_identifiers_do_not_repeat() -> None:
    assert len({new_id() for _ in range(1000)}) == 1000
    assert len(new_id()) == 32
