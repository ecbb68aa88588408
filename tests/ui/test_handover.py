"""What a server says after a start to a shell that still waits for a copy to be restored."""

from pathlib import Path

import pytest

from ui.handover import Handover, Said, Step


def nothing_is_cleared() -> None:
    raise AssertionError("somebody waits for it")


@pytest.mark.parametrize(
    ("before", "staged", "after"),
    [
        ("asked", True, Said("asked", "told before")),  # taken up by the next look
        ("ending", True, Said("asked")),  # the one before was killed
        ("ending", False, Said("serving")),  # it was killed between the last step and its word
        ("placed", False, Said("serving", "told before")),
        ("refused", True, Said("refused", "told before")),
    ],
)
def test_a_server_goes_on_where_the_one_before_ended(tmp_path: Path, before: Step, staged: bool, after: Said) -> None:
    shell, server = Handover(tmp_path), Handover(tmp_path)
    with shell.waiting():
        shell.tell(before, "told before")
        server.settle(lambda: staged, nothing_is_cleared)
        assert shell.said() == after
    assert shell.said() is None
