"""The box where a question is written: files, the count of tokens, drafts, keys, and the input method."""

import re

import pytest
from playwright.sync_api import FilePayload, Locator, Page, expect

from tests.browser.conftest import Chat, Visit
from tests.server import RunningServer

pytestmark = pytest.mark.browser

CSV = "姓名,数量\n张三,3\n".encode("gb18030")


def box(page: Page) -> Locator:
    return page.get_by_label("Write a message")


def answer(page: Page) -> Locator:
    return page.locator(".turn").last.locator(".answer-text")


def count(page: Page) -> Locator:
    return page.locator(".token-count")


def attach(page: Page, *files: tuple[str, bytes]) -> None:
    sent = [FilePayload(name=name, mimeType="text/plain", buffer=raw) for name, raw in files]
    page.locator(".composer input[type=file]").set_input_files(sent)


def test_a_file_goes_with_the_question_and_is_shown_folded(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    attach(page, ("数据.csv", CSV), ("notes.md", b"# Notes\n```\nnot the end\n```\n"))
    chips = page.locator(".file-chip")
    expect(chips).to_have_count(2)
    page.get_by_role("button", name="Remove notes.md").click()
    expect(chips).to_have_text(["数据.csv"])
    page.reload()
    expect(chips).to_have_text(["数据.csv"])  # the draft keeps its files
    box(page).fill("Who is in it?")
    box(page).press("Enter")
    expect(answer(page).locator("pre")).to_have_text("姓名,数量\n张三,3\n")  # the script echoes the prompt
    expect(chips).to_have_count(0)
    question = page.locator(".question")
    expect(question).to_contain_text("Who is in it?")
    expect(question.locator("pre")).not_to_be_visible()
    question.locator("summary").click()
    expect(question.locator("pre")).to_have_text("姓名,数量\n张三,3")
    page.reload()
    expect(page.locator(".question summary")).to_have_text("数据.csv")
    expect(chips).to_have_count(0)
    prompt = server.rows("select messages from exchanges order by queued_at desc limit 1")[0][0]
    assert "File: " in prompt


def test_a_file_that_is_no_text_or_too_large_is_refused_by_name(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    attach(page, ("picture.png", b"\x89PNG\r\n\x1a\n\0"))
    expect(page.get_by_role("alert")).to_contain_text("picture.png is no text file")
    attach(page, ("log.txt", b"x" * 600_000))
    expect(page.get_by_role("alert")).to_contain_text("log.txt is too large: a file may have 500 kB.")
    attach(page, ("log.txt", b"x" * 400_000))
    expect(page.get_by_role("alert")).to_contain_text("log.txt has 400,000 characters; a message may have 250,000.")
    expect(page.locator(".file-chip")).to_have_count(0)


def test_files_are_dropped_on_the_box_as_many_as_a_message_may_have(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    page.evaluate(
        """() => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File(['{"a": 1}'], "data.json"));
            for (let i = 1; i < 9; i++) dataTransfer.items.add(new File(["text " + i], i + ".txt"));
            const drop = new DragEvent("drop", {dataTransfer, bubbles: true, cancelable: true});
            document.querySelector(".composer").dispatchEvent(drop);
        }"""
    )
    expect(page.get_by_role("alert")).to_contain_text("A message may have 8 files.")
    expect(page.locator(".file-chip")).to_have_text(["data.json", *(f"{i}.txt" for i in range(1, 8))])
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".question summary")).to_have_count(8)
    prompt = server.rows("select prompt from exchanges where prompt like 'File: data.json%'")[0][0]
    assert prompt.startswith('File: data.json\n```json\n{"a": 1}\n```\n\nFile: 1.txt\n```\ntext 1\n```')


def test_tokens_are_counted_while_one_writes_and_too_many_are_told_before_sending(
    server: RunningServer, chat: Chat
) -> None:
    page = chat(server)
    box(page).fill("one two three")
    expect(count(page)).to_have_text(re.compile(r"^\d+ tokens, room for 4,\d+ more$"))
    box(page).fill("word " * 4200)
    expect(count(page)).to_have_text(re.compile(r"^\d+ tokens too long: the model reads 4,095$"))
    expect(count(page)).to_have_class(re.compile("over"))
    box(page).fill("")
    expect(count(page)).to_have_text("")


def test_counting_costs_one_request_a_pause_and_not_one_a_key(server: RunningServer, visit: Visit) -> None:
    page = visit(server)
    page.evaluate(
        """() => {
            window.counts = 0;
            const emit = window.socket.emit.bind(window.socket);
            window.socket.emit = (...args) => {
                if (JSON.stringify(args).includes('"mark"')) window.counts++;
                return emit(...args);
            };
        }"""
    )
    box(page).press_sequentially("thirty keys, and at most a few", delay=5)
    expect(count(page)).to_contain_text("tokens")
    assert page.evaluate("window.counts") <= 3


def test_a_large_paste_is_kept_whole(server: RunningServer, visit: Visit) -> None:
    page = visit(server)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    text = "\n".join(f"line {i} of a large text" for i in range(4_000))
    page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
    box(page).press("ControlOrMeta+V")
    expect(box(page)).to_have_value(text)
    page.reload()
    expect(box(page)).to_have_value(text)


def test_the_box_grows_with_its_text(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    height = "(box) => box.getBoundingClientRect().height"
    one = box(page).evaluate(height)
    box(page).fill("one\ntwo\nthree\nfour")
    assert box(page).evaluate(height) > 2 * one
    box(page).fill("line\n" * 100)
    assert box(page).evaluate(height) < 300


def test_each_conversation_keeps_its_own_draft(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    box(page).fill("Draft elsewhere")
    box(page).press("Enter")
    expect(answer(page)).to_have_text("You said: Draft elsewhere")
    box(page).fill("for this one")
    page.reload()
    expect(box(page)).to_have_value("for this one")
    page.get_by_role("link", name="New chat").click()
    expect(page).to_have_url(server.url + "/")  # the box is emptied before there is something to go back from
    expect(box(page)).to_have_value("")
    box(page).fill("for a new one")
    page.go_back()
    expect(box(page)).to_have_value("for this one")
    page.go_forward()
    expect(box(page)).to_have_value("for a new one")


# --- keys ---


def test_shortcuts_are_listed_and_can_be_turned_off(server: RunningServer, visit: Visit) -> None:
    page = visit(server)
    page.locator(".thread-scroll").focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_contain_text("Search conversations")
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    page.keyboard.press("ControlOrMeta+K")
    expect(page.get_by_label("Search")).to_be_focused()

    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_label("Use keyboard shortcuts").uncheck()
    page.get_by_role("button", name="Close").last.click()
    page.reload()
    expect(box(page)).to_be_focused()
    page.keyboard.press("ControlOrMeta+K")
    expect(box(page)).to_be_focused()
    page.locator(".thread-scroll").focus()
    page.keyboard.press("?")
    expect(dialog).not_to_be_visible()
    box(page).fill("long, and no key ends it")
    box(page).press("Enter")
    expect(answer(page)).to_contain_text("word3")
    page.keyboard.press("Escape")
    shown = len(answer(page).inner_text().split())
    expect(answer(page)).to_contain_text(f"word{shown + 20}")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".note")).to_contain_text("You stopped this answer.")
    box(page).press("ArrowUp")
    page.keyboard.press("ControlOrMeta+Shift+O")
    page.keyboard.type("still here")
    expect(count(page)).to_contain_text("tokens")  # the server has answered what came after the keys
    expect(box(page)).to_have_value("still here")
    expect(page.locator(".question")).to_have_text("You asked: long, and no key ends it")


def test_a_new_conversation_by_keys(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    box(page).fill("Leave me by keys")
    box(page).press("Enter")
    expect(answer(page)).to_have_text("You said: Leave me by keys")
    page.keyboard.press("ControlOrMeta+Shift+O")
    expect(page.get_by_role("heading", name="What can I help you with?")).to_be_visible()
    expect(box(page)).to_be_focused()


def test_arrow_up_in_the_empty_box_takes_up_the_last_message(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    box(page).fill("Say it better")
    box(page).press("Enter")
    expect(answer(page)).to_have_text("You said: Say it better")
    box(page).press("ArrowUp")
    edited = page.locator(".question-edit textarea")
    expect(edited).to_have_value("Say it better")
    expect(edited).to_be_focused()


def test_no_key_of_an_input_method_does_anything_else(server: RunningServer, chat: Chat) -> None:
    """Safari says keyCode 229 and no longer isComposing for the Enter that ends a composition."""
    page = chat(server)
    box(page).fill("你好")
    page.evaluate(
        """() => {
            const box = document.querySelector(".composer textarea");
            const enter = new KeyboardEvent("keydown", {key: "Enter", keyCode: 229, bubbles: true, cancelable: true});
            window.taken = !box.dispatchEvent(enter);
        }"""
    )
    assert not page.evaluate("window.taken")
    expect(box(page)).to_have_value("你好")
    box(page).fill("")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Input.imeSetComposition", {"text": "ni", "selectionStart": 2, "selectionEnd": 2})
    for key in ("Escape", "ArrowUp", "Enter"):
        devtools.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", "key": key, "windowsVirtualKeyCode": 229})
    devtools.send("Input.insertText", {"text": "你"})
    expect(box(page)).to_have_value("你")
    expect(page.locator(".turn")).to_have_count(0)


def compose(page: Page) -> None:
    """Write a word with an input method, whose own keys choose it."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Input.imeSetComposition", {"text": "ni hao", "selectionStart": 6, "selectionEnd": 6})
    for key in ("ArrowDown", "Escape", "Enter"):
        pressed = {"type": "rawKeyDown", "key": key, "code": key, "windowsVirtualKeyCode": 229}
        devtools.send("Input.dispatchKeyEvent", pressed)
    devtools.send("Input.insertText", {"text": "你好"})


def test_an_input_method_has_its_keys_to_itself_in_the_other_fields(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    box(page).fill("as it was ")
    box(page).press("Enter")
    expect(page.locator(".turn")).to_have_attribute("data-status", "done")
    box(page).press("ArrowUp")
    edited = page.get_by_label("Edit your message")
    expect(edited).to_be_focused()
    compose(page)
    expect(edited).to_have_value("as it was 你好")
    expect(page.locator(".turn")).to_have_count(1)
    page.keyboard.press("Escape")

    search = page.get_by_label("Search")
    search.focus()
    compose(page)
    expect(search).to_have_value("你好")
    expect(search).to_be_focused()
    page.keyboard.press("Escape")
    expect(search).to_have_value("")

    page.get_by_role("button", name="Options: as it was").first.focus()
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Rename").click()
    renamed = page.get_by_label("Rename", exact=True)
    expect(renamed).to_be_focused()
    compose(page)
    expect(renamed).to_have_value("你好")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="你好")).to_be_visible()
