"""The chat page in a real browser: a conversation from the first question on, and what can happen on the way."""

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Chat, Visit
from tests.server import RunningServer

pytestmark = pytest.mark.browser

LAST_WORD = "word1999"  # of the scripted answer to "long"


def box(page: Page) -> Locator:
    return page.get_by_label("Write a message")


def ask(page: Page, question: str) -> None:
    box(page).fill(question)
    box(page).press("Enter")


def answer(page: Page, number: int = -1) -> Locator:
    return page.locator(".turn").nth(number).locator(".answer-text")


def note(page: Page) -> Locator:
    """The sentence under the newest answer."""
    return page.locator(".turn").last.locator(".note")


def test_a_question_is_answered_and_gets_an_address_of_its_own(server: RunningServer, visit: Visit) -> None:
    page = visit(server)
    expect(page.get_by_role("heading", name="What can I help you with?")).to_be_visible()
    expect(page.get_by_text("Answers can be wrong; check what matters.")).to_be_visible()
    ask(page, "Say **hello**, please")
    expect(answer(page)).to_have_text("You said: Say hello, please")
    expect(answer(page).locator("strong")).to_have_text("hello")
    expect(page).to_have_url(re.compile(r"/c/[0-9a-f]{32}$"))
    expect(box(page)).to_have_value("")
    expect(
        page.get_by_role("navigation", name="Conversations").get_by_role("link", name="Say **hello**")
    ).to_be_visible()

    page.reload()
    expect(answer(page)).to_have_text("You said: Say hello, please")
    expect(page.locator(".turn")).to_have_count(1)


def test_an_answer_grows_before_ones_eyes_and_stop_keeps_what_is_there(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "long story")
    expect(answer(page)).to_contain_text("word5")
    seen = answer(page).inner_text()
    expect(answer(page)).not_to_have_text(seen)
    page.get_by_role("button", name="Stop").click()
    expect(note(page)).to_contain_text("You stopped this answer.")
    kept = answer(page).inner_text()
    assert kept.startswith("word0 word1 word2")
    assert LAST_WORD not in kept
    page.reload()
    expect(answer(page)).to_have_text(kept)


def test_escape_stops(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "long story")
    expect(answer(page)).to_contain_text("word3")
    page.keyboard.press("Escape")
    expect(note(page)).to_contain_text("You stopped this answer.")
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_a_reload_in_the_middle_loses_nothing_and_doubles_nothing(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "long story")
    expect(answer(page)).to_contain_text("word10")
    page.reload()
    expect(answer(page)).to_contain_text("word60")
    page.keyboard.press("Escape")
    expect(note(page)).to_contain_text("You stopped this answer.")
    words = answer(page).inner_text().split()
    assert words == [f"word{i}" for i in range(len(words))]
    expect(page.locator(".turn")).to_have_count(1)


def test_two_tabs_of_a_conversation_stay_in_step(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "First question")
    expect(page.locator(".turn")).to_have_attribute("data-status", "done")
    other = page.context.new_page()
    other.goto(page.url)
    expect(answer(other)).to_have_text("You said: First question")

    ask(other, "long question from the other tab")
    expect(page.locator(".turn")).to_have_count(2)
    expect(answer(page)).to_contain_text("word8")
    page.get_by_role("button", name="Stop").click()
    expect(note(other)).to_contain_text("You stopped this answer.")
    assert answer(other).inner_text() == answer(page).inner_text()


def test_a_new_tab_takes_up_an_answer_whose_page_was_closed(server: RunningServer, visit: Visit) -> None:
    page = visit(server)
    ask(page, "long question of a closed tab")
    expect(answer(page)).to_contain_text("word5")
    context, address = page.context, page.url
    page.close()
    other = context.new_page()
    other.goto(address)
    expect(answer(other)).to_contain_text("word40")
    other.get_by_role("button", name="Stop").click()
    expect(note(other)).to_contain_text("You stopped this answer.")


def test_enter_twice_sends_once(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    box(page).fill("Only once, please")
    page.evaluate(
        """() => {
            const box = document.querySelector(".composer textarea");
            const enter = () => new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true});
            for (let i = 0; i < 3; i++) box.dispatchEvent(enter());
        }"""
    )
    expect(answer(page)).to_have_text("You said: Only once, please")
    page.reload()
    expect(answer(page)).to_have_text("You said: Only once, please")
    expect(page.locator(".turn")).to_have_count(1)


def test_shift_enter_breaks_the_line(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    box(page).fill("one")
    box(page).press("Shift+Enter")
    page.keyboard.type("two")
    expect(box(page)).to_have_value("one\ntwo")
    expect(page.locator(".turn")).to_have_count(0)


def test_enter_in_an_input_method_chooses_and_does_not_send(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    box(page).focus()
    devtools = page.context.new_cdp_session(page)
    devtools.send("Input.imeSetComposition", {"text": "ni hao", "selectionStart": 6, "selectionEnd": 6})
    enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229}
    devtools.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **enter})
    devtools.send("Input.insertText", {"text": "你好"})
    devtools.send("Input.dispatchKeyEvent", {"type": "keyUp", **enter})
    expect(box(page)).to_have_value("你好")
    expect(page.locator(".turn")).to_have_count(0)
    box(page).press("Enter")
    expect(answer(page)).to_have_text("You said: 你好")


def test_on_a_touch_screen_enter_breaks_the_line(server: RunningServer, visit: Visit) -> None:
    page = visit(server, has_touch=True, is_mobile=True, viewport={"width": 360, "height": 740})
    box(page).fill("one")
    box(page).press("Enter")
    page.keyboard.type("two")
    expect(box(page)).to_have_value("one\ntwo")
    page.get_by_role("button", name="Send").tap()
    expect(answer(page)).to_have_text("You said: one two")
    expect(page.get_by_role("button", name="Edit", exact=True)).to_have_css("opacity", "1")  # nothing hovers here


def test_a_draft_outlives_the_page(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    box(page).fill("half a thou")
    page.reload()
    expect(box(page)).to_have_value("half a thou")


def test_a_paste_that_is_too_long_is_told_and_loses_nothing(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    box(page).fill("my draft")
    page.evaluate(
        """() => {
            const data = new DataTransfer();
            data.setData("text", "x".repeat(1_100_000));
            const paste = new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
            document.querySelector(".composer textarea").dispatchEvent(paste);
        }"""
    )
    expect(page.get_by_role("alert")).to_contain_text("1,100,008 characters")
    expect(box(page)).to_have_value("my draft")


def test_a_message_longer_than_the_context_is_refused_with_both_numbers(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    text = "word " * 4200
    ask(page, text)
    expect(page.get_by_role("alert")).to_contain_text("4,206 tokens, and the model reads 4,096")
    expect(box(page)).to_have_value(text)
    expect(page.locator(".turn")).to_have_count(0)


def test_failures_keep_the_text_and_offer_another_try(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "fail midway")
    expect(note(page)).to_contain_text("Something went wrong while this was answered.")
    expect(answer(page)).to_have_text("This answer breaks off")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("2/2")).to_be_visible()


def test_regenerate_makes_another_version_and_both_can_be_read(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "Tell me again")
    page.get_by_role("button", name="Regenerate").click()
    expect(page.get_by_text("2/2")).to_be_visible()
    expect(page.locator(".turn")).to_have_attribute("data-status", "done")
    second = page.locator(".turn").get_attribute("data-id")
    page.get_by_role("button", name="Previous version").click()
    expect(page.get_by_text("1/2")).to_be_visible()
    assert page.locator(".turn").get_attribute("data-id") != second
    ask(page, "Go on from the first")
    expect(page.locator(".turn")).to_have_count(2)
    page.reload()
    expect(page.locator(".turn")).to_have_count(2)
    expect(page.get_by_text("1/2")).to_be_visible()


def test_copies_the_markdown_of_an_answer_and_the_text_of_code(server: RunningServer, visit: Visit) -> None:
    page = visit(server)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(page, "some *code*:\n\n```python\nprint(1)\n```")
    page.get_by_role("button", name="Copy", exact=True).last.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "You said: some *code*:\n\n```python\nprint(1)\n```"
    page.get_by_role("button", name="Copy this code").click()
    page.wait_for_function("async () => await navigator.clipboard.readText() === 'print(1)\\n'")

    expect(page.locator(".code-bar span")).to_have_text("python")
    wrap = page.get_by_role("button", name="Wrap the lines of this code")
    lines = page.locator(".code-frame code")
    for pressed, space in (("false", "pre"), ("true", "pre-wrap"), ("false", "pre")):
        expect(wrap).to_have_attribute("aria-pressed", pressed)
        expect(lines).to_have_css("white-space", space)
        wrap.click()


def test_figures_of_an_answer_on_demand(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "How fast are you, and who are you?")
    page.get_by_role("button", name="Details").click()
    for name in ("Waited", "First token after", "Tokens", "Tokens per second", "Model"):
        expect(page.locator("dt", has_text=re.compile(f"^{name}$"))).to_be_visible()


def test_the_view_follows_the_answer_until_the_reader_scrolls_up(server: RunningServer, visit: Visit) -> None:
    page = visit(server, viewport={"width": 900, "height": 500})
    ask(page, "long story")
    scroll, back = page.locator(".thread-scroll"), page.get_by_role("button", name="To the end")

    def to_the_end() -> float:
        return float(scroll.evaluate("(box) => box.scrollHeight - box.scrollTop - box.clientHeight"))

    def to_the_end_some_lines_later() -> float:
        grown = "(least) => document.querySelector('.thread-scroll').scrollHeight > least"
        page.wait_for_function(grown, arg=scroll.evaluate("(box) => box.scrollHeight") + 60)
        return to_the_end()

    expect(answer(page)).to_contain_text("word200", timeout=30_000)
    assert to_the_end() < 2
    scroll.hover()
    page.mouse.wheel(0, -20)  # less than a line, as two fingers do it: the next words take nobody back
    expect(back).to_be_visible()
    assert to_the_end_some_lines_later() > 60
    page.mouse.wheel(0, 9999)
    expect(back).to_be_hidden()
    assert to_the_end_some_lines_later() < 2
    scroll.focus()
    page.keyboard.press("PageUp")
    expect(back).to_be_visible()
    assert to_the_end_some_lines_later() > 60
    back.click()
    assert to_the_end() < 2
    page.keyboard.press("Escape")


def test_the_screen_reader_hears_the_start_and_the_finished_answer(server: RunningServer, visit: Visit) -> None:
    page = visit(server)
    page.evaluate(
        """() => {
            window.said = [];
            const region = [...document.querySelectorAll("[aria-live=polite]")].at(-1);
            const observer = new MutationObserver(() => region.textContent && said.push(region.textContent));
            observer.observe(region, {childList: true, characterData: true, subtree: true});
        }"""
    )
    ask(page, "one two three four five six seven eight nine ten eleven twelve")
    page.wait_for_function("said.length > 1")
    said = page.evaluate("said")
    assert said == [
        "The answer has started.",
        "You said: one two three four five six seven eight nine ten eleven twelve",
    ]


def test_settings_of_a_conversation_reach_the_next_question(server: RunningServer, visit: Visit) -> None:
    page = visit(server)
    page.get_by_role("button", name="Settings of this conversation").click()
    page.get_by_label("Temperature").fill("9")
    page.get_by_role("dialog").locator("form").evaluate("(form) => (form.noValidate = true)")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Temperature goes from 0 to 2")
    page.get_by_label("Temperature").fill("0")
    page.get_by_label("Longest answer").fill("4")
    page.get_by_label("System prompt").fill("Be brief.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).not_to_be_visible()
    ask(page, "one two three four five")
    expect(answer(page)).to_have_text("You said: one two")
    expect(note(page)).to_contain_text("The answer reached its greatest length.")
    asked = "select messages, sampling from exchanges where prompt = 'one two three four five'"
    messages, sampling = map(json.loads, server.rows(asked)[0])
    assert messages[0] == {"role": "system", "content": "Be brief."}
    assert (sampling["temperature"], sampling["max_tokens"]) == (0, 4)
    page.reload()
    page.get_by_role("button", name="Settings of this conversation").click()
    expect(page.get_by_label("System prompt")).to_have_value("Be brief.")


def test_no_conversation_of_this_name(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/c/0123456789abcdef0123456789abcdef")
    expect(page.get_by_role("heading", name="There is no such conversation.")).to_be_visible()
