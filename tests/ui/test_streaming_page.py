"""What an open chat page is sent while an answer comes: a few updates a second, however fast the tokens are."""

import json
import re
import time

from tests.server import RunningServer
from tests.ui.test_signing_out import chat_page
from tests.ui.test_sockets import heard, socket

A_SECOND = 10  # updates at most
WORDS = 100  # fifty a second


async def test_an_answer_comes_in_ten_updates_a_second_at_most(server: RunningServer) -> None:
    with server.sign_in("bob") as browser:
        client_id, element, listener = chat_page(browser)
        async with socket(server, browser, client_id) as connection:
            question = " ".join(f"word{n}" for n in range(WORDS))
            args = [json.dumps({"text": question, "nonce": "n", "conversation": ""})]
            event = {"client_id": client_id, "id": element, "listener_id": listener, "args": args}
            began, updates, done = time.monotonic(), 0, False
            await connection.send("42" + json.dumps(["event", event]))
            while not done:
                told = str((await heard(connection, "42"))[1])
                updates += '"stream"' in told
                done = re.search(r'"status": ?"done"', told) is not None
            took = time.monotonic() - began
    assert 2 < updates <= A_SECOND * took + 1
