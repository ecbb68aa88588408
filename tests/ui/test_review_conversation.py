"""What is shown of an opened exchange: its way through the conversation's tree, and its numbers."""

from typing import get_args

import pytest

from engine.types import Message, Role, Sampling, Status
from tests.ui.exchanges import exchange
from ui.components.review.conversation import branch, role_name, said, versions, view
from ui.components.review.facts import duration, facts, status_name, summary, tokens_per_s
from ui.i18n import language

EN, ZH = language("en"), language("zh")

# a - b - d    b was asked again as c, which went on to e
TREE = [
    exchange("a"),
    exchange("b", "a", after_s=10),
    exchange("c", "a", after_s=20),
    exchange("d", "b", after_s=30),
    exchange("e", "c", after_s=40),
]


@pytest.mark.parametrize(("opened", "way"), [("a", "ace"), ("b", "abd"), ("c", "ace"), ("d", "abd"), ("e", "ace")])
def test_the_way_through_the_tree_leads_over_the_opened_exchange(opened: str, way: str) -> None:
    chosen = next(one for one in TREE if one.id == opened)
    assert "".join(one.id for one in branch(TREE, chosen)) == way


def test_versions_stand_at_the_same_place() -> None:
    assert versions(TREE, TREE[2]) == ["b", "c"]
    assert versions(TREE, TREE[0]) == ["a"]


def test_a_ring_of_parents_comes_to_an_end() -> None:
    ring = [exchange("x", "y"), exchange("y", "x")]
    assert [one.id for one in branch(ring, ring[0])] == ["y", "x"]


def test_a_parent_that_retention_took_ends_the_way() -> None:
    orphan = exchange("z", "gone")
    assert branch([orphan], orphan) == [orphan]


def test_the_numbers_are_all_there() -> None:
    shown = {fact["name"]: fact["value"] for group in facts(TREE[0], EN) for fact in group["facts"]}
    assert shown == {
        "Status": "Done",
        "Finish reason": "stop",
        "Source": "Chat page",
        "Exchange id": "a",
        "Queue wait": "2 s",
        "Time to first token": "3 s",
        "Total time": "7 s",
        "Speed": "10 tokens/s",
        "Queue depth on arrival": "3",
        "Prompt tokens": "1,234",
        "From the prefix cache": "1,000",
        "Completion tokens": "41",
        "Model name": "Qwen2-0.5B-Instruct",
        "Quantisation": "nf4",
        "Temperature": "0.7",
        "top_p": "0.8",
        "top_k": "20",
        "Repetition penalty": "1.05",
        "Seed": "7",
        "Most tokens": "1,024",
        "Stop strings": r"'\n\n'",
    }


def test_whom_a_program_asked_for_and_what_it_wants_to_find_again_is_shown() -> None:
    one = exchange("a", end_user="kim@shop", request_metadata=(("ticket", "4711"), ("Status", "<b>open</b>")))
    groups = {group["title"]: group["facts"] for group in facts(one, EN)}
    assert {"name": "End user", "value": "kim@shop"} in groups["Outcome"]
    assert groups["Metadata of the program"] == [
        {"name": "ticket", "value": "4711"},
        {"name": "Status", "value": "<b>open</b>"},
    ]


def test_values_that_only_programs_give_are_shown_where_they_were_given() -> None:
    sampling = Sampling(frequency_penalty=0.5, presence_penalty=-1.25, json_schema='{"type": "object"}')
    groups = facts(exchange("a", sampling=sampling), EN)
    shown = {fact["name"]: fact["value"] for group in groups for fact in group["facts"]}
    assert (shown["Frequency penalty"], shown["Presence penalty"]) == ("0.5", "-1.25")
    assert shown["JSON schema"] == '{"type": "object"}'


def test_a_number_that_was_never_reached_is_left_out() -> None:
    waiting = exchange("w", status=Status.CANCELLED, started_at=None, first_token_at=None, completion_tokens=0)
    assert tokens_per_s(waiting) is None
    assert summary(waiting, EN) == ["7 s in all"]


def test_summary_in_both_languages() -> None:
    assert summary(TREE[0], EN) == [
        "2 s in the queue",
        "3 s to the first token",
        "41 tokens",
        "10 tokens/s",
        "7 s in all",
    ]
    assert summary(TREE[0], ZH) == ["排队 2 秒", "首个 token 3 秒", "41 个 token", "10 token/秒", "共 7 秒"]


def test_durations_have_as_many_digits_as_they_deserve() -> None:
    assert [duration(value, EN) for value in (None, 0.034, 12.34, 119.9, 185)] == [
        "",
        "0.03 s",
        "12.3 s",
        "119.9 s",
        "3 min 5 s",
    ]


def test_every_status_has_a_name_of_its_own_in_both_languages() -> None:
    for say in (EN, ZH):
        assert len({status_name(status, say) for status in Status}) == len(Status)


def test_answers_are_rendered_and_prompts_are_text() -> None:
    opened = exchange("a", messages=(Message("user", "<b>hi</b>"),), answer="**hi**")
    shown = view(opened, [opened], "ada", EN, lambda text: f"<rendered {text}>")
    assert shown["turns"][0]["prompt"] == "<b>hi</b>"
    assert shown["turns"][0]["answer"] == "<rendered **hi**>"
    assert shown["earlier"] == []


def test_a_programs_request_shows_what_it_brought_along() -> None:
    messages = (
        Message("system", "Be kind."),
        Message("user", "one"),
        Message("assistant", "two"),
        Message("user", "three"),
    )
    opened = exchange("a", conversation_id=None, source="api", messages=messages)
    shown = view(opened, [opened], "ada", EN, str.upper)
    assert [(said["role"], said["text"], said["html"]) for said in shown["earlier"]] == [
        ("system", "Be kind.", ""),
        ("user", "one", ""),
        ("assistant", "two", "TWO"),
    ]
    assert shown["turns"][0]["prompt"] == "three"


def test_a_text_that_is_gone_on_with_is_called_so() -> None:
    opened = exchange(
        "a", conversation_id=None, source="api", messages=(Message("text", "Once upon a"),), answer=" time"
    )
    shown = view(opened, [opened], "ada", EN, str.upper)
    assert shown["earlier"] == []
    assert shown["turns"][0]["prompt"] == "Once upon a"
    assert shown["turns"][0]["summary"][0] == "Goes on with a text as it is"
    assert [one["roleName"] for one in said(opened.messages, EN)] == ["Text to go on with"]


def test_every_role_has_a_name_of_its_own_in_both_languages() -> None:
    for say in (EN, ZH):
        assert len({role_name(role, say) for role in get_args(Role)}) == len(get_args(Role))
