"""What a reviewer reads of a thumb: the reason in the reader's words, never by the name that it has in the log."""

from datetime import UTC, datetime

import pytest

from storage.records import Feedback, Rating, Reason
from ui.components.feedback import reasons
from ui.components.review.work import feedback_lines
from ui.i18n import language

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def given(rating: Rating, reason: Reason = "", comment: str = "") -> Feedback:
    return Feedback(exchange_id="e", user_id="u", rating=rating, reason=reason, comment=comment, at=NOON)


@pytest.mark.parametrize(
    ("code", "lines"),
    [("en", ["Thumbs down", "Not correct", "WAL is not that"]), ("zh", ["点了踩", "不正确", "WAL is not that"])],
)
def test_a_thumb_with_its_reason_and_comment(code: str, lines: list[str]) -> None:
    assert feedback_lines(given(-1, "incorrect", "WAL is not that"), language(code)) == lines


def test_a_bare_thumb_and_none() -> None:
    assert feedback_lines(given(1), language("en")) == ["Thumbs up"]
    assert feedback_lines(None, language("en")) == []


@pytest.mark.parametrize("rating", [1, -1])
def test_every_reason_that_can_be_given_has_words(rating: Rating) -> None:
    for reason, words in reasons(rating, language("en")).items():
        assert feedback_lines(given(rating, reason), language("en"))[1] == words != reason
