"""Files that last are read and compressed once, and answered from memory.

A browser that comes for the first time asks for dozens of them, and the routes would read and compress each again for
everybody. Lies innermost, so that who may ask, what is logged and which headers an answer gets is decided as for
everything else. Knows a file by its path alone.
"""

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ui.middleware import lasts

OURS = "/static/"  # these change with a new process only
MOST_BYTES = 32 * 1024 * 1024  # NiceGUI ships more than pages ask for
PARTLY = ("range", "if-none-match", "if-modified-since")  # something else than the whole file is asked for


class KeptFiles:
    def __init__(self, app: ASGIApp, most_bytes: int = MOST_BYTES) -> None:
        self.app, self.compressing = app, GZipMiddleware(app)
        self._room = most_bytes
        self._kept: dict[tuple[str, bool], tuple[Message, Message]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _asks_for_a_file(scope):
            await self.app(scope, receive, send)
            return
        key = scope["path"], "gzip" in Headers(scope=scope).get("accept-encoding", "")
        start, body = self._kept.get(key) or await self._read(key, scope, receive)
        await send({**start, "headers": list(start["headers"])})
        await send(body)

    async def _read(self, key: tuple[str, bool], scope: Scope, receive: Receive) -> tuple[Message, Message]:
        start: Message = {}
        pieces: list[bytes] = []

        async def take(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                pieces.append(message.get("body", b""))

        await self.compressing(scope, receive, take)
        body = b"".join(pieces)
        MutableHeaders(scope=start)["Content-Length"] = str(len(body))
        answer = start, {"type": "http.response.body", "body": body}
        if start["status"] == 200 and key not in self._kept and len(body) <= self._room:
            self._room -= len(body)
            self._kept[key] = answer
        return answer


def _asks_for_a_file(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    path: str = scope["path"]
    return (lasts(path) or path.startswith(OURS)) and not any(name in Headers(scope=scope) for name in PARTLY)
