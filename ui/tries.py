"""How often a password may be tried: by account and address, by account, by address. Kept in memory."""

from limits import parse
from limits.strategies import MovingWindowRateLimiter
from loguru import logger

from ui.windows import SteadyStorage

TRIES_HERE = parse("5/minute")  # wrong passwords for one account from one address
TRIES_ACCOUNT = parse("60/hour")  # wrong passwords for one account from anywhere
TRIES_ADDRESS = parse("60/5minutes")  # wrong passwords from one address, which may be a whole office


class TooManyTries(Exception):
    """Wait before the next try."""


class Tries:
    def __init__(self) -> None:
        self._limiter = MovingWindowRateLimiter(SteadyStorage())

    def begin(self, account: str, address: str) -> None:
        """Count a try before it is made, so that many at once count too. Raises TooManyTries."""
        room = self._limiter.test(TRIES_ACCOUNT, account) and self._limiter.test(TRIES_ADDRESS, address)
        if not room or not self._limiter.hit(TRIES_HERE, account, address):
            logger.warning("too many sign-ins for {!r} from {}", account, address)
            raise TooManyTries

    def failed(self, account: str, address: str) -> None:
        self._limiter.hit(TRIES_ACCOUNT, account)
        self._limiter.hit(TRIES_ADDRESS, address)

    def succeeded(self, account: str, address: str) -> None:
        self._limiter.clear(TRIES_HERE, account, address)
