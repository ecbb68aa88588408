"""The main job end to end: a person chats with the packaged 4-bit Qwen2 in the browser, and a reviewer reads it."""

import html
import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.test_chat import answer, ask, box, note
from tests.browser.test_review_work import opened
from tests.server import RunningServer, bearer, eventually, running_server

pytestmark = [pytest.mark.browser, pytest.mark.model]

FIRST_START_S = 900.0  # where the model has to be fetched and quantised first


@pytest.fixture(scope="module")
def qwen() -> Iterator[RunningServer]:
    accounts = {"ada": "staff", "rita": "reviewer"}
    settings = {"backend": "qwen2", "model": "packaged", "threads": 1, "max_new_tokens": 400}
    with running_server(accounts=accounts, ready=False, **settings) as server:  # type: ignore[arg-type]  # names of settings
        eventually(lambda: httpx.get(server.url + "/readyz").status_code == 200, within_s=FIRST_START_S)
        yield server


def test_staff_ask_a_4_bit_qwen2_and_reviewers_read_what_it_said(qwen: RunningServer, visit: Visit) -> None:
    page = visit(qwen, name="ada")
    question = "用一句话介绍杭州。"
    box(page).fill(question)
    counted = httpx.post(qwen.url + "/v1/tokenize", json={"prompt": question}, headers=bearer()).json()["count"]
    shown = page.locator(".token-count")
    expect(shown).to_have_text(re.compile(r"^\d+ tokens, room for 4,\d+ more$"))
    assert 0 < int(shown.inner_text().split()[0]) - counted < 20  # the template around it
    box(page).press("Enter")
    expect(page.locator(".turn").last).to_have_attribute("data-status", "done", timeout=120_000)
    said = answer(page).inner_text()
    assert re.search(r"[\u4e00-\u9fff]", said)
    assert "\ufffd" not in said

    (row,) = qwen.rows(
        "select id, answer, status, quantization, model, prompt_tokens, completion_tokens, sampling from exchanges"
        " where prompt = ? and source = 'page'",
        question,
    )
    assert row[2:4] == ("done", "nf4")
    assert "Qwen2" in row[4]
    assert row[5] > counted
    assert row[6] >= len(said) / 4
    review = visit(qwen, f"/review?open={row[0]}", name="rita")
    opened(review, row[0])
    expect(review.locator(f"#turn-{row[0]}")).to_contain_text(said.split("\n")[0])
    review.get_by_role("button", name="Show the exact messages").click()
    expect(review.locator(".turn-read pre")).to_contain_text(f"<|im_start|>user\n{question}<|im_end|>")
    expect(review.locator(".turn-read b").last).to_have_text("<|im_start|>")

    review.get_by_role("button", name="Run again").click()
    review.get_by_role("button", name="Run", exact=True).click()
    expect(review.locator(".work-rerun .answer-text")).to_be_visible(timeout=120_000)
    again = qwen.rows("select answer, sampling from exchanges where source = 'review'")
    assert again == [(row[1], row[7])], "chance draws the same with the same seed, which was logged"


def test_administrators_read_what_the_engine_itself_tells(qwen: RunningServer) -> None:
    with qwen.sign_in() as admin:
        model, overview = (html.unescape(admin.get(path).text) for path in ("/admin/model", "/admin"))
    assert re.search(r'"label":"Weights","value":"0\.[1-9]\d*","unit":"GiB","note":"4 bits, NF4"', model)
    assert re.search(r'"label":"Loaded in","value":"[^"]+","unit":"","note":"of it [\d.]+ s to warm up"', model)
    assert re.search(r'"label":"Slots","value":"\d+","unit":"of \d+"', overview)
    assert re.search(r'"label":"KV cache","value":"[\d.]+","unit":"%","note":"of [\d,]+ tokens"', overview)


def test_stop_frees_the_engine_and_keeps_what_is_there(qwen: RunningServer, visit: Visit) -> None:
    page = visit(qwen, name="ada")
    ask(page, "Tell a very long fairy tale of at least two thousand words about a queue at a bakery.")
    expect(answer(page)).to_contain_text(re.compile(r"\w+ ?\W+\w+ ?\W+\w+"), timeout=120_000)
    page.get_by_role("button", name="Stop").click()
    eventually(lambda: httpx.get(qwen.url + "/readyz").json()["running"] == 0, within_s=1)
    expect(note(page)).to_contain_text("You stopped this answer.")
    ((kept, tokens),) = qwen.rows("select answer, completion_tokens from exchanges where status = 'stopped'")
    assert 0 < tokens < 400
    page.reload()
    expect(answer(page)).to_have_text(re.compile(re.escape(kept.split("\n")[0].strip()[:20])))
