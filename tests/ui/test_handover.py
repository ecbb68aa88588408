"""What a server and a shell tell each other about a copy: after a start, and where somebody has planted a link."""

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


@pytest.mark.parametrize("step", ["asked", "refused"])
def test_no_word_is_written_to_where_a_link_leads(tmp_path: Path, step: Step) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("not ours")
    (tmp_path / f"qdesk.restore.{step}").symlink_to(theirs)
    (tmp_path / "qdesk.restore").symlink_to(theirs)
    Handover(tmp_path).tell(step, "why")
    assert Handover(tmp_path).said() == Said(step, "why")
    assert theirs.read_text() == "not ours"
