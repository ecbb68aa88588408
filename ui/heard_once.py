"""What somebody does on a page reaches the server: once, and in the order in which it was done.

NiceGUI sends an event and forgets it. What is done before the page has its socket waits in a timer of its own for each
event, so that a click may come before the words that were written ahead of it; and what is sent on a connection that is
dead already, which browsers notice seconds later, is lost. Here the page numbers its events, keeps each until the
server has said that it heard it, and sends those that are left again when it has shaken hands anew; the server passes
over what it has heard. Numbers begin with the time: no document that is opened again begins behind another of the same
page. All of it goes with the document, and each event names its own page: no other hears it.
"""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from nicegui import Client

Handler = Callable[[str, Any], Any]

# What NiceGUI's script does not send because it is too long gets no answer, and would be kept for ever.
SCRIPT = """
(() => {
    const LONGEST = 999_000;
    let socket, tell, ready = false, owed = [], number = Date.now() * 1000;
    const settle = (message) => (owed = owed.filter((one) => one !== message));
    Object.defineProperty(window, "socket", {
        get: () => socket,
        set(made) {
            socket = made;
            const emit = made.emit;
            tell = (message) => {
                emit.call(made, "event", message, () => settle(message));
                if (JSON.stringify(message).length > LONGEST) settle(message);
            };
            made.emit = (name, message, ...more) => {
                if (name !== "event") return emit.call(made, name, message, ...more);
                message = { ...message, number: ++number };
                owed.push(message);
                if (ready) tell(message);
                return made;
            };
            made.on("disconnect", () => {
                ready = false;  // and nothing goes out ahead of what was before it
                made.sendBuffer = made.sendBuffer.filter((packet) => packet.data[0] !== "event");
            });
        },
    });
    Object.defineProperty(window, "did_handshake", {
        get: () => socket !== undefined,  // from then on events are kept here, and NiceGUI does not hold them back
        set(done) {
            ready = done && socket.connected;
            if (ready) owed.forEach(tell);
        },
    });
})();
"""


def once(handler: Handler) -> Handler:
    """The handler of a page's events, for those that it has not heard yet; what has no number is no page's of ours."""
    newest: WeakKeyDictionary[Client, int] = WeakKeyDictionary()

    def hear(sid: str, message: Any) -> Any:
        client, number = Client.instances[message["client_id"]], message.get("number")
        if isinstance(number, int):
            if number <= newest.get(client, 0):
                return None
            newest[client] = number
        return handler(sid, message)

    return hear
