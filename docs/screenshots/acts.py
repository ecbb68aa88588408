"""What somebody does on a page before its picture is taken; by selectors, since the words differ from look to look."""

from collections.abc import Callable

from playwright.sync_api import FilePayload, Page

Act = Callable[[Page], None]
NO_EXPORT = FilePayload(name="notes.json", mimeType="application/json", buffer=b"{}")


def ask(question: str) -> Act:
    def act(page: Page) -> None:
        page.fill("textarea", question)
        page.click(".send-button")  # Enter breaks the line where there is a touch screen

    return act


def write(text: str) -> Act:
    return lambda page: page.fill("textarea", text)


def click(*selectors: str) -> Act:
    """One after the other."""

    def act(page: Page) -> None:
        for selector in selectors:
            page.click(selector)

    return act


def ask_twice(question: str) -> Act:
    """Ask, and have the answer made again."""

    def act(page: Page) -> None:
        ask(question)(page)
        page.click(".answer-actions > .icon-button:not(.thumb) >> nth=1")

    return act


def open_list(page: Page) -> None:
    """On a phone the list of conversations is a drawer."""
    if page.is_visible(".drawer-button"):
        page.click(".drawer-button")


def open_archive(page: Page) -> None:
    open_list(page)
    click(".own-button", ".own-menu button >> nth=0")(page)


def bring_a_wrong_file(page: Page) -> None:
    page.set_input_files(".sidebar-foot input[type=file]", NO_EXPORT)


def lose_the_connection(page: Page) -> None:
    page.wait_for_selector(".answer-actions")  # what is there stays to be read
    page.context.set_offline(True)


def search(text: str) -> Act:
    def act(page: Page) -> None:
        open_list(page)
        page.fill(".sidebar-search", text)

    return act


def try_the_api(key: str) -> Act:
    """Send what the opened operation offers to be tried, and look at it from its top."""

    def act(page: Page) -> None:
        page.fill(".api-key input", key)
        page.click(".api-trial [type=submit]")
        page.wait_for_selector(".api-line.good")
        page.evaluate("document.querySelector('.api-operation:has(.api-body)').scrollIntoView()")

    return act


def show_keys(page: Page) -> None:
    page.wait_for_selector(".composer")
    page.evaluate("window.dispatchEvent(new CustomEvent('qdesk:shortcuts'))")
