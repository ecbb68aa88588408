"""Takes every picture of docs/screenshots: the real server, the real pages, a real Chromium; a script plays the model.

    make screenshots
    python -m docs.screenshots.take chat-streaming review    # only those whose names begin so

What there is to see is written by `house`, and the model's part is played by `stage`. Each page and state is taken as a
wide light one, dark, in Chinese, and on a phone, which is touched.
"""

import asyncio
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, FloatRect, Page, StorageState

from docs.screenshots import acts
from docs.screenshots.house import PASSWORD, PEOPLE, RATED, RUNNING, Furnished, furnish
from docs.screenshots.stage import BROKEN, MODELS, NAMED, STAGE, STREAMED
from tests.chromium import running_chromium
from tests.server import API_KEY, RunningServer, running_server

PICTURES = Path(__file__).parent
COLOURS = 256  # of a picture's palette
WAITING = 3  # requests that may wait
LASTS = 600  # tokens of the answer by which the server knows how long one lasts: half a minute

WANTED = tuple(sys.argv[1:]) or ("",)  # how the names of the pictures begin that are taken

ASK = "/v1/chat/completions"
LONG: dict[str, object] = {"messages": [{"role": "user", "content": "long"}]}


@dataclass(frozen=True)
class Look:
    """One way to look at a page."""

    name: str
    width: int = 1280
    height: int = 800
    language: str = "en-US"
    dark: bool = False
    touch: bool = False


PHONE = Look("phone", width=390, height=780, touch=True)
WIDE = (Look("light"), Look("dark", dark=True), Look("chinese", language="zh-CN"))
LOOKS = (*WIDE, PHONE)


@contextmanager
def crowd(server: RunningServer, size: int) -> Iterator[None]:
    """So many programs that ask for a long answer at once, until the block ends."""
    with ExitStack() as answers, programs(server) as ask_for:
        for _ in range(size):
            answers.enter_context(ask_for.stream("POST", ASK, json=LONG | {"stream": True}))
        yield


def learn_how_long_one_lasts(server: RunningServer) -> None:
    """One whole answer, from which the server tells those who wait how long it will be."""
    with programs(server) as ask_for:
        ask_for.post(ASK, json=LONG | {"max_tokens": LASTS}).raise_for_status()


def programs(server: RunningServer) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {API_KEY}"}, timeout=60)


class Photographer:
    """Opens pages as somebody, in each look, and takes their pictures."""

    def __init__(self, browser: Browser, server: RunningServer) -> None:
        self._browser, self._server = browser, server
        self._cookies: dict[str, StorageState] = {}

    @contextmanager
    def comes(self, person: str, look: Look = LOOKS[0]) -> Iterator[BrowserContext]:
        """A browser of this person, who is signed in if they were when they came last."""
        with self._browser.new_context(
            viewport={"width": look.width, "height": look.height},
            has_touch=look.touch,
            is_mobile=look.touch,
            locale=look.language,
            timezone_id="UTC",
            color_scheme="dark" if look.dark else "light",
            reduced_motion="reduce",
            base_url=self._server.url,
            storage_state=self._cookies.get(person),
        ) as context:
            yield context

    def send(self, person: str, path: str, fields: dict[str, str]) -> None:
        """Fill in a plain form by the names of its fields; whom that makes of the browser is kept for the pictures."""
        with self.comes(person) as context:
            page = context.new_page()
            page.goto(path)
            for name, value in fields.items():
                page.fill(f"input[name={name}]", value)
            page.click("button[type=submit]")
            page.wait_for_url(lambda url: path not in url)
            self._cookies[person] = context.storage_state()

    def take(
        self,
        name: str,
        path: str,
        person: str = "",
        *,
        shows: str = "",
        act: acts.Act | None = None,
        of: Sequence[Look] = LOOKS,
        below: str = "",
    ) -> None:
        """A picture in each look, when `act` is done and `shows` (a CSS selector) is there: all, or from `below` on."""
        if not name.startswith(WANTED):
            return
        for look in of:
            with self.comes(person, look) as context:
                page = context.new_page()
                page.goto(path)
                if act:
                    act(page)
                if shows:
                    page.wait_for_selector(shows)
                page.wait_for_load_state("networkidle")
                _save(page, PICTURES / f"{name}-{look.name}.png", below)
                self._clear_away(page, begun=path == "/")

    def _clear_away(self, page: Page, *, begun: bool) -> None:
        """Leave no answer running, nothing in the line, and no conversation that was `begun` for the picture."""
        stop = page.locator(".send-button.stop")
        if stop.is_visible():
            stop.click()
            page.wait_for_selector(".send-button:not(.stop)")
        if begun and (own := re.search(r"/c/(\w+)$", page.url)):
            self._server.change("update conversations set deleted_at = updated_at where id = ?", own[1])


def _save(page: Page, path: Path, below: str) -> None:
    """Take the picture and keep it small: a page has few colours."""
    page.screenshot(path=path, full_page=bool(below), clip=_rest(page, below) if below else None)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}  {path.stat().st_size / 1024:.0f} kB")


def _rest(page: Page, below: str) -> FloatRect:
    """The page from this element on, with some room above it."""
    first, whole = page.locator(below).bounding_box(), page.locator(".page").bounding_box()
    assert first
    assert whole
    top = first["y"] - 16
    return FloatRect(x=0, y=top, width=whole["width"], height=whole["y"] + whole["height"] - top)


# --- the pictures ---


def take_chat(camera: Photographer, server: RunningServer, made: Furnished) -> None:
    camera.take("login", "/login")
    camera.take("login-ended", "/login?ended=signed-out")
    camera.take("chat-empty", "/", "lin", shows="textarea")
    code, formula = (f"/c/{id}" for id in made.conversations[-2:])
    camera.take("chat", code, "ada", shows="pre code")
    camera.take("chat-formula", formula, "ada", shows="math")
    camera.take("chat-edit", code, "ada", shows=".question-edit", act=acts.click(".edit-question"))
    camera.take("chat-settings", code, "ada", shows="dialog[open]", act=acts.click(".settings-button"))
    camera.take("chat-keys", "/", "lin", shows="dialog[open]", act=acts.show_keys, of=WIDE)
    camera.take("chat-templates", "/", "lin", shows="#template-list li", act=acts.write("/"))
    camera.take("chat-search", "/", "lin", shows=".sidebar-list mark", act=acts.search("量化"))
    camera.take("chat-drawer", code, "ada", shows=".sidebar-wrap.open .drawer-close", act=acts.open_list, of=[PHONE])
    half = ".answer-text:has-text('if line in seen')"
    camera.take("chat-streaming", "/", "lin", shows=half, act=acts.ask(STREAMED))
    camera.take("chat-failed", "/", "lin", shows=".note-bad", act=acts.ask(BROKEN))
    if "chat-waiting".startswith(WANTED):
        learn_how_long_one_lasts(server)
    for look in LOOKS:
        with crowd(server, RUNNING + 2):
            camera.take("chat-waiting", "/", "lin", shows=".ticket", act=acts.ask("差旅报销需要哪些材料？"), of=[look])
    with crowd(server, RUNNING + WAITING):
        camera.take("chat-full", "/", "lin", shows=".waiting-bar", act=acts.ask("差旅报销需要哪些材料？"))


def take_over_the_chat(camera: Photographer, server: RunningServer, made: Furnished) -> None:
    """What lies over the chat, or has become of it. What is changed for a picture is changed back."""
    code = f"/c/{made.conversations[-2]}"
    with_others = acts.click(".more summary", ".more-list button >> nth=0")
    camera.take("chat-regenerate", code, "ada", shows="dialog[open]", act=with_others)
    camera.take("chat-offline", code, "ada", shows=".banner-warn", act=acts.lose_the_connection)
    camera.take("chat-import", "/", "lin", shows="dialog[open]", act=acts.bring_a_wrong_file)
    camera.take("chat-versions", "/", "lin", shows="[data-status=done] .versions", act=acts.ask_twice(NAMED))
    for look in LOOKS:  # each begins without a thumb
        thumb_down = acts.click(".thumb >> nth=1")
        camera.take("chat-feedback", code, "ada", shows=".feedback[open]", act=thumb_down, of=[look])
        server.change("delete from feedback where exchange_id = ?", made.exchanges[-2])
    server.change("update conversations set archived_at = updated_at where id = ?", made.conversations[2])
    camera.take("chat-archive", "/", "lin", shows=".back-button ~ section", act=acts.open_archive)
    server.change("update conversations set archived_at = null where id = ?", made.conversations[2])
    with banner(camera, "今晚 22:00 – 22:30 维护 · Maintenance tonight, 22:00 to 22:30"):
        camera.take("chat-banner", code, "ada", shows=".site-banner")


def take_api(camera: Photographer) -> None:
    camera.take("api", "/docs", "lin", shows=".api-operation")
    asking = "/docs#post-v1-chat-completions"
    camera.take("api-tried", asking, "lin", shows=".api-line.good", act=acts.try_the_api(API_KEY))


@contextmanager
def banner(camera: Photographer, words: str) -> Iterator[None]:
    """What an administrator shows on every page, until the block ends."""
    with camera.comes("ada") as context:
        page = context.new_page()
        page.goto("/admin/steer")
        page.get_by_label("Text").fill(words)
        page.get_by_role("button", name="Show it").click()
        page.locator(".site-banner").wait_for()
        yield
        page.get_by_role("button", name="Take it down").click()
        page.locator(".site-banner").wait_for(state="hidden")


def take_log(camera: Photographer, made: Furnished) -> None:
    """Before anything is asked for a picture, and stands in the log."""
    camera.take("account", "/account", "ada")
    camera.take("review", "/review", "omar", shows=".inbox-row")
    camera.take("review-opened", f"/review?open={made.exchanges[RATED]}", "omar", shows=".work-bar")
    camera.take("review-retention", "/review/retention", "ada")
    camera.take("admin-audit", "/admin/audit", "ada", shows="td")
    camera.take("admin-model", "/admin/model", "ada", shows="td", below="h2 ~ h2")


def take_crowded(camera: Photographer, server: RunningServer) -> None:
    with crowd(server, RUNNING + 2):
        camera.take("admin", "/admin", "ada")
        camera.take("admin-steer", "/admin/steer", "ada")
        camera.take("admin-people", "/admin/people", "ada")
        camera.take("admin-history", "/admin/history?range=day", "ada", shows=".timeline:not(.busy) path.stack")
    camera.take("invite", invitation(camera))


def invitation(camera: Photographer) -> str:
    """The address of a new invitation."""
    with camera.comes("ada") as context:
        page = context.new_page()
        page.goto("/admin/people")
        page.get_by_role("button", name="Invite by link").click()
        link = page.locator(".fresh .key").inner_text()
    return "/invite?" + link.partition("?")[2]


def take_first_steps(browser: Browser) -> None:
    """A server without accounts, whose administrators have a second step."""
    with running_server(program=STAGE, admin_password="", require_totp="admin") as server:
        camera = Photographer(browser, server)
        link = re.search(r"/setup\?token=\S+", server.output())
        assert link
        camera.take("setup", link[0])
        camera.send("first", link[0], {"name": "ada", "password": PASSWORD, "again": PASSWORD})
        camera.take("second-step", "/login/second-step", "first", shows=".qr")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder) / "data"
        data_dir.mkdir()
        made = asyncio.run(furnish(data_dir))
        with (
            running_chromium() as browser,
            running_server(
                data_dir,
                program=STAGE,
                model=MODELS[0],
                models=",".join(MODELS[1:]),
                max_concurrent_requests=RUNNING,
                max_waiting_requests=WAITING,
                max_requests_per_user=20,
            ) as server,
        ):
            camera = Photographer(browser, server)
            for person in PEOPLE:
                camera.send(person, "/login", {"name": person, "password": PASSWORD})
            take_log(camera, made)
            take_chat(camera, server, made)
            take_over_the_chat(camera, server, made)
            take_api(camera)
            take_crowded(camera, server)
            take_first_steps(browser)


if __name__ == "__main__":
    main()
