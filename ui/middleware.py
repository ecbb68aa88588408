"""What lies around every HTTP request beside our own layers, ui/entry.py and ui/guard.py.

NiceGUI puts two layers of Starlette's BaseHTTPMiddleware outermost, for two headers. Each has a task and two queues of
its own for every request, which is most of a refusal's time beside a crowd (docs/performance.md). Entry sets both
headers, so they are left out.
"""

from nicegui import App
from nicegui.middlewares import RedirectWithPrefixMiddleware, SetCacheControlMiddleware
from nicegui.version import __version__
from starlette.types import ASGIApp

DONE_BY_ENTRY: tuple[object, ...] = (RedirectWithPrefixMiddleware, SetCacheControlMiddleware)
FILES = f"/_nicegui/{__version__}/"  # their addresses change with NiceGUI's version


def lasts(path: str) -> bool:
    """Whether what is at this path may be kept by browsers for ever."""
    return path.startswith(FILES) and not path.startswith(f"{FILES}dynamic_resources/")


def leave_out_what_entry_does(app: App) -> None:
    """To be called before the server runs; NiceGUI adds its layers just then."""
    build = app.build_middleware_stack

    def build_without() -> ASGIApp:
        app.user_middleware = [layer for layer in app.user_middleware if layer.cls not in DONE_BY_ENTRY]
        return build()

    app.build_middleware_stack = build_without  # type: ignore[method-assign]  # the one place that sees all of them
