"""A hub on loopback for the real huggingface_hub client: model information, files with Range, and what can go wrong.

Large files are sent on to another host name, as hubs do with their stores. Every byte that is served is counted.
"""

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

COMMIT = "c0ffee" * 6 + "cafe"


class Hub:
    """`models[name][file]` is a file's content. The rest are faults to set, and what was seen."""

    def __init__(self, url: str, store: str) -> None:
        self.url, self.store = url, store
        self.models: dict[str, dict[str, bytes]] = {}
        self.gated: set[str] = set()
        self.break_at: dict[str, list[int]] = {}  # file: where a connection breaks, one after the other; -1: error
        self.damaged: set[str] = set()  # files that are served with a wrong byte
        self.silent = False
        self.before_sending: Callable[[str], None] = lambda file: None
        self.page = b""  # what it answers to everything, as a proxy may
        self.served: Counter[str] = Counter()  # bytes by file
        self.asked: list[str] = []  # "METHOD path", in order
        self.store_saw_token = False
        self.released = threading.Event()  # set at the end: lets silent connections go

    def is_large(self, name: str) -> bool:
        return name.endswith(".safetensors")

    def info(self, repository: str) -> dict[str, object]:
        siblings = [
            {"rfilename": name, "size": len(data), "blobId": git_sha1(data)}
            | ({"lfs": {"size": len(data), "sha256": sha256(data), "pointerSize": 130}} if self.is_large(name) else {})
            for name, data in self.models[repository].items()
        ]
        return {"id": repository, "modelId": repository, "sha": COMMIT, "siblings": siblings}

    def tree(self, repository: str) -> list[dict[str, object]]:
        return [
            {"type": "file", "path": name, "size": len(data), "oid": git_sha1(data)}
            | ({"lfs": {"size": len(data), "oid": sha256(data), "pointerSize": 130}} if self.is_large(name) else {})
            for name, data in self.models[repository].items()
        ]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def git_sha1(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    hub: Hub


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def hub(self) -> Hub:
        assert isinstance(self.server, Server)
        return self.server.hub

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        hub, path = self.hub, urlsplit(self.path).path
        hub.asked.append(f"{self.command} {path}")
        if hub.silent:
            hub.released.wait()
            self.close_connection = True
            return
        if hub.page:
            self.send_body(hub.page)
            return
        parts = path.strip("/").split("/")
        match parts:
            case ["api", "models", owner, name, *rest] if f"{owner}/{name}" in hub.models:
                repository = f"{owner}/{name}"
                self.send_json(hub.tree(repository) if rest[:1] == ["tree"] else hub.info(repository))
            case [owner, name, "resolve", _, file] if file in hub.models.get(f"{owner}/{name}", {}):
                self.resolve(f"{owner}/{name}", file)
            case ["store", owner, name, file]:
                hub.store_saw_token |= "Authorization" in self.headers
                self.send_file(file, hub.models[f"{owner}/{name}"][file])
            case _:
                self.refuse(401, "RepoNotFound", "Repository not found.")

    def resolve(self, repository: str, file: str) -> None:
        data = self.hub.models[repository][file]
        if repository in self.hub.gated:
            self.refuse(403, "GatedRepo", "Access to this model is restricted.")
        elif self.hub.is_large(file):
            self.send_response(302)
            self.send_header("Location", f"{self.hub.store}/store/{repository}/{file}")
            self.send_header("X-Linked-Size", str(len(data)))
            self.send_header("X-Linked-Etag", f'"{sha256(data)}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.send_file(file, data)

    def send_file(self, file: str, data: bytes) -> None:
        self.hub.before_sending(file)
        breaks = self.hub.break_at.get(file, []) if self.command == "GET" else []
        end = breaks.pop(0) if breaks else len(data)
        if end < 0:
            self.refuse(500, "", "The store is out of order.")
            return
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("Content-Length", str(len(data) - start))
        if "Range" in self.headers:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("ETag", f'"{git_sha1(data)}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command == "HEAD":
            return
        if file in self.hub.damaged:
            data = data[:-1] + bytes([data[-1] ^ 1])
        self.wfile.write(data[start:end])
        self.hub.served[file] += max(0, end - start)
        self.close_connection = end < len(data)

    def send_json(self, content: object) -> None:
        self.send_body(json.dumps(content).encode())

    def send_body(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status: int, code: str, message: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", message)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: `asked` has it all."""


@contextmanager
def serve() -> Iterator[Hub]:
    server = Server(("127.0.0.1", 0), Handler)
    port = server.server_address[1]
    hub = server.hub = Hub(f"http://127.0.0.1:{port}", f"http://localhost:{port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hub
    finally:
        hub.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
