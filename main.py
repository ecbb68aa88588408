"""Qdesk: settings -> store, backend, service -> faces -> one server; with arguments, a command in the shell instead."""

import asyncio
import gc
import signal
import socket
import sys

for number in (signal.SIGINT, signal.SIGTERM):  # until the server runs there is nothing to finish
    signal.signal(number, lambda *_: sys.exit(0))
gc.disable()  # what is imported stays; looking for garbage among it takes a seventh of the start

for name in ("aiohttp", "requests"):  # python-socketio imports them, where it can, for clients; a server has none
    sys.modules[name] = None  # type: ignore[assignment]  # as if it were not installed
from loguru import logger
from nicegui import app, ui

for name in ("aiohttp", "requests"):
    del sys.modules[name]

from engine.backends import create_backend
from engine.monitor import Monitor
from engine.places import Places
from engine.service import ChatService
from engine.settings import Settings, load
from engine.shared_places import SharedPlaces
from storage import Store
from storage.errors import StorageError
from storage.joining import Joining
from ui.access import without_rule
from ui.api.all import register as register_api
from ui.auth import Auth
from ui.bus import Bus
from ui.connections import serving
from ui.desk import Desk
from ui.entry import Entry
from ui.guard import Guard
from ui.handover import Handover, Step, undisturbed
from ui.interpreter import settle
from ui.kept_files import KeptFiles
from ui.logs import log_in_one_place
from ui.middleware import leave_out_what_entry_does
from ui.nonces import put_nonces_into_pages
from ui.page_ends import take_pages_apart
from ui.pages import account, admin, chat, login, review
from ui.seal import Seal, open_seal
from ui.serving import Life, prepare
from ui.sockets import guard_sockets
from ui.starting import NO_OTEL, begin_anew, check_address, data_folder
from ui.static_files import STATIC

VERSION = "0.1.0"
LONGEST_MESSAGE = 8 * 1024 * 1024  # bytes on a socket; the largest request, and room to say that it is too large
TAB_S = 60  # nothing is kept for a tab, and NiceGUI would keep that nothing for 30 days
SHUTDOWN_S = 5  # for connections that are still open when every answer has ended


def build(settings: Settings) -> Desk:
    """Join the parts: the store opens, the service is ready to load its model, the faces are registered."""
    store = Store(settings.sqlalchemy_url, goes_on=settings.on_log_failure == "warn")
    seal = open_seal(settings)
    store.open(joining=joining(settings, seal))
    places = SharedPlaces(store.cluster) if store.cluster else Places()
    service = ChatService(settings, create_backend(settings), store.exchanges, places=places)
    bus = Bus(store.cluster.tell if store.cluster else None)
    desk = Desk(settings, service, store, Auth(store, settings, seal, bus), Monitor(service), bus)
    app.add_static_files("/static", STATIC, max_cache_age=365 * 24 * 3600)
    for page in (login, account, chat, review, admin):
        page.register(desk)
    register_api(desk, VERSION)  # after the pages: POST / would be lost to a page at the same path
    if unknown := without_rule(app.routes):
        sys.exit(f"No rule says who may use {', '.join(unknown)}; ui/access.py is the place for it.")
    return desk


def joining(settings: Settings, seal: Seal) -> Joining | None:
    """What this process brings along where it may be one of several on the same database."""
    if not settings.shares_database:
        return None
    return Joining(f"{socket.gethostname()}:{settings.port}", seal("process", "the same secret"), settings.heartbeat_s)


def main() -> None:
    settle()
    log_in_one_place()
    settings = load()
    log_in_one_place(settings.log_format)
    try:
        if arguments := sys.argv[1:]:
            from ui.console.commands import run  # a server does without, and starts the sooner

            sys.exit(run(arguments, settings, Store(settings.sqlalchemy_url)))
        with data_folder(settings.data_dir, shared=settings.shares_database) as claim:
            check_address(settings.host, settings.port)
            desk = build(settings)
            asyncio.run(prepare(desk))
            life = serve(desk)
            if life.restores:
                with undisturbed() as signals:
                    put_copy_in_place(desk.store, life.handover)
                if not signals:  # else it was told to end meanwhile
                    begin_anew(claim)
    except StorageError as error:
        sys.exit(str(error))


def serve(desk: Desk) -> Life:
    """Answer until a signal or a restore ends it, or the engine is broken for good: a failure, with the reason."""
    guard_sockets(desk.auth)
    app.add_middleware(KeptFiles)
    app.add_middleware(Guard, auth=desk.auth, settings=desk.settings)
    if desk.settings.otlp_endpoint:
        trace(desk)
    app.add_middleware(
        Entry, secure=desk.settings.public_url.startswith("https://"), base=desk.settings.base_path, board=desk.board
    )
    leave_out_what_entry_does(app)
    take_pages_apart()
    put_nonces_into_pages()
    app.storage.max_tab_storage_age = TAB_S
    life = Life(desk)
    life.register()
    ui.run(
        host=desk.settings.host,
        port=desk.settings.port,
        title="Qdesk",
        dark=None,
        favicon=(STATIC / "qdesk.svg").read_text(encoding="utf-8"),
        reload=False,
        show=False,
        show_welcome_message=False,
        tailwind=False,
        reconnect_timeout=30,
        binding_refresh_interval=1,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=SHUTDOWN_S,
        access_log=False,
        server_header=False,
        **serving(LONGEST_MESSAGE),
    )
    if life.broken:
        sys.exit(life.broken)
    return life


def put_copy_in_place(store: Store, handover: Handover) -> None:
    """What a shell has staged becomes the database, which is closed, if that shell still waits for it."""
    said = handover.said()  # nothing yet to a shell that came instead, and has no copy ready
    if not said or said.step not in ("asked", "ending") or not handover.is_waited_for():
        logger.warning("nobody waits for the copy any more, so the database stays as it is")
        return
    try:
        store.give_up_log()
        kept = store.put_in_place()
    except StorageError as error:
        logger.error("the database stays as it is: {}", error)
        word: tuple[Step, str] = ("refused", str(error))
    else:
        logger.info("the copy is the database now; the one before is kept as {}", kept)
        word = ("placed", str(kept or ""))
    try:
        handover.tell(*word)
    except OSError as error:  # the disk may be full, which keeps no server from beginning anew
        logger.error("the shell that restores cannot be told: {}", error)


def trace(desk: Desk) -> None:
    """Send traces of requests to the collector of the settings."""
    try:
        from ui.tracing import Traced, Tracing  # a server that traces nothing does without
    except ImportError:
        sys.exit(NO_OTEL)
    tracing = Tracing(desk.settings.otlp_endpoint, VERSION)
    app.add_middleware(Traced, tracing=tracing)
    desk.service.on_closed.append(tracing.tell)
    app.on_shutdown(tracing.stop)


if __name__ == "__main__":
    main()
