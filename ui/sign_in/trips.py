"""The ways of people to an OpenID provider and back: in memory, open once, for who began them. Knows no protocol."""

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field

LASTS_S = 600.0  # the person may have to find their password first
MOST = 10_000  # at once; the oldest gives way


class ProviderAway(Exception):
    """The provider cannot be reached, or says nothing that makes sense. The text is for the log."""


class NotVouchedFor(Exception):
    """What came back is not the provider's word about somebody who began here. The text is for the log."""


class Declined(Exception):
    """The provider let nobody in: the person has turned back, or may not use this server."""


class WrongDomain(Exception):
    """The provider knows no verified e-mail address of this person in a domain that may come in."""


@dataclass(frozen=True, slots=True)
class Trip:
    """`session_id`: of who connects their account; "" for signing in, by the browser with this cookie."""

    browser: str
    next: str
    redirect_uri: str
    session_id: str = ""
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    until: float = field(default_factory=lambda: time.monotonic() + LASTS_S)


class Trips:
    def __init__(self) -> None:
        self._trips: OrderedDict[str, Trip] = OrderedDict()  # by state

    def begin(self, trip: Trip) -> str:
        """Return the state, by which the trip is found again."""
        state = secrets.token_urlsafe(32)
        self._trips[state] = trip
        if len(self._trips) > MOST:
            self._trips.popitem(last=False)
        return state

    def take(self, state: str, browser: str, session_id: str) -> Trip:
        """The trip of this state, which is over by that. Raises NotVouchedFor where it is not the asker's."""
        trip = self._trips.pop(state, None)
        if trip is None or time.monotonic() >= trip.until:
            raise NotVouchedFor("nobody began this here, or long ago")
        own = session_id == trip.session_id if trip.session_id else browser == trip.browser
        if not own:
            raise NotVouchedFor("another browser began this")
        return trip
