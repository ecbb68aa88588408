"""The script that every signed-in page runs before anything else of it is there.

- The language, before anything is read aloud, and the path that the site begins with, before anything asks for it.
- How a moment is told: in the reader's time zone and language.
- How a text is copied: over plain http too, where browsers have no clipboard for scripts.
- A form that the browser sends takes the page away by itself: the session's end that comes of it leads it nowhere else.
  One that the browser brings back, because the form failed or somebody went back, is there again.
- What is done on the page reaches the server, also before there is a socket (ui/heard_once.py).
- No key of an input method does anything else: the Enter that chooses a word sends nothing, the Escape that drops it
  closes nothing. Safari says keyCode 229, and no longer isComposing, for the Enter that ends a composition.
"""

from ui.heard_once import SCRIPT
from ui.i18n import Language

_REST = """
window.moment_text = (at, timeStyle = "short") => {
    const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle });
    return format.format(new Date(at));
};
window.copy_text = async (text) => {
    if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    area.style.opacity = "0";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
};
addEventListener("submit", (event) => {
    window.leaving = event.target.method === "post" && !event.defaultPrevented;
});
addEventListener("pageshow", (event) => {
    if (event.persisted) window.leaving = false;
});
addEventListener("keydown", (event) => {
    if (!event.isComposing && event.keyCode !== 229) return;
    event.stopImmediatePropagation();
    if (event.key === "Enter" && event.target.matches?.("input")) event.preventDefault(); // else its form would be sent
}, true);
"""


def early_script(say: Language, base: str, nonce: str) -> str:
    """The whole <script>; for `base` see ui/base_path.py, for `nonce` ui/nonces.py."""
    begins = f'document.documentElement.lang = "{say.tag}"; window.path_prefix = "{base}";'
    return f'<script nonce="{nonce}">{begins}{SCRIPT}{_REST}</script>'
