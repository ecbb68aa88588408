"""What people see while the server cannot answer: it loads, could not load, or goes down."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.barriers import PHONE, passes, passes_in_the_dark_on_a_phone_too
from tests.browser.conftest import Visit
from tests.server import SLOW_START, RunningServer, eventually, running_server
from tests.ui.console.test_commands import command

pytestmark = pytest.mark.browser


@contextmanager
def loading_server() -> Iterator[RunningServer]:
    """A server that has its first account and waits for its model."""
    with running_server(program=SLOW_START, ready=False) as server:
        eventually(lambda: "downloading" in httpx.get(server.url + "/readyz").text)
        yield server


def ask(page: Page, question: str) -> None:
    page.get_by_label("Write a message").fill(question)
    page.get_by_label("Write a message").press("Enter")


def test_while_the_model_loads_one_sees_how_far_it_is_and_may_write_already(visit: Visit) -> None:
    """What is written meanwhile is sent when the model is ready, a reload or not."""
    with loading_server() as server:
        page, admin = visit(server), visit(server, "/admin")
        banner = page.locator(".banner")
        expect(banner).to_contain_text("The model is loading. You can write already; it answers when it is ready.")
        expect(banner.get_by_role("progressbar")).to_have_js_property("position", 0.3)
        passes_in_the_dark_on_a_phone_too(page)
        state = admin.locator(".state")
        expect(state).to_contain_text("The model is loading (downloading).")
        ask(page, "too early")
        expect(page.get_by_text("is sent as soon as the model is ready")).to_be_visible()
        expect(page.get_by_label("Write a message")).to_have_value("too early")
        page.reload()
        expect(page.get_by_text("is sent as soon as the model is ready")).to_be_visible()

        server.process.send_signal(signal.SIGUSR1)
        expect(banner).not_to_be_visible()
        expect(state).to_contain_text("Answering")
        expect(state).not_to_contain_text("The model is loading")
        expect(page.locator(".turn .answer-text")).to_have_text("You said: too early")
        assert server.rows("select prompt from exchanges") == [("too early",)]


def test_why_a_model_could_not_be_loaded_is_on_every_page(visit: Visit) -> None:
    with loading_server() as server:
        page, admin = visit(server), visit(server, "/admin")
        server.process.send_signal(signal.SIGUSR2)
        sentence = "The model cannot answer at present: There is no model in this folder."
        expect(page.locator(".banner-bad")).to_have_text(sentence)
        passes_in_the_dark_on_a_phone_too(page)
        expect(admin.get_by_text("There is no model in this folder.")).to_be_visible()
        chinese = visit(server, locale="zh-CN", color_scheme="dark", viewport=PHONE)
        expect(chinese.locator(".banner-bad")).to_contain_text("模型暂时无法回答")
        passes(chinese)
        ask(page, "anybody there?")
        expect(page.get_by_role("alert")).to_contain_text("The model cannot answer at present. Please tell")
        expect(page.get_by_label("Write a message")).to_have_value("anybody there?")


def test_before_a_restart_people_are_told_and_running_answers_go_on(visit: Visit) -> None:
    with running_server(drain_s=60) as server:
        page, other = visit(server), visit(server)
        ask(page, "long")
        answer = page.locator(".turn .answer-text")
        expect(answer).to_contain_text("word2")
        server.process.send_signal(signal.SIGTERM)
        expect(page.locator(".banner")).to_contain_text("The server is about to restart.")
        said = len(answer.inner_text().split())
        expect(answer).to_contain_text(re.compile(rf"word{said + 20}\b"))
        ask(other, "one more")
        expect(other.get_by_role("alert")).to_contain_text("The server is about to restart. Your message stays here")
        page.get_by_role("button", name="Stop").click()
        assert server.process.wait(60) == 0


def test_after_a_restore_pages_come_back_by_themselves_with_what_the_copy_holds(visit: Visit, tmp_path: Path) -> None:
    with running_server() as server:
        page = visit(server)
        answers = page.locator(".turn .answer-text")
        ask(page, "before the copy")
        expect(answers).to_have_text(["You said: before the copy"])
        assert command(server.data_dir, "backup", tmp_path / "copy.db") == 0
        ask(page, "since the copy")
        expect(answers).to_have_text(["You said: before the copy", "You said: since the copy"])
        page.get_by_label("Write a message").fill("not sent yet")
        assert command(server.data_dir, "restore", tmp_path / "copy.db") == 0
        expect(answers).to_have_text(["You said: before the copy"])
        expect(page.get_by_label("Write a message")).to_have_value("not sent yet")
        ask(page, "after the restore")
        expect(answers).to_have_text(["You said: before the copy", "You said: after the restore"])
