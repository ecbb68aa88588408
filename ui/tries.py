"""How often a password may be tried: by account and address, by account, by address. Kept in memory, in every process.

Who tries on has to wait longer and longer. An address from which somebody has signed in to an account is not kept out
of it by strangers who try elsewhere, so that nobody can lock an administrator out.
"""

import json
import math
import time
from collections import OrderedDict

from limits import RateLimitItem, parse
from limits.strategies import MovingWindowRateLimiter
from loguru import logger

from ui.bus import Bus
from ui.windows import SteadyStorage

TRIES_HERE = [parse(text) for text in ("5/minute", "10/10minutes", "20/hour")]  # for one account from one address
TRIES_ACCOUNT = parse("60/hour")  # wrong passwords for one account from anywhere
TRIES_ADDRESS = parse("60/5minutes")  # wrong passwords from one address, which may be a whole office
LEAVING_ADDRESS = parse("60/5minutes")  # ways to a provider that are begun from one address
TOPIC = "tried"  # on the bus
KNOWN = 10_000  # pairs of account and address that are remembered


class TooManyTries(Exception):
    """Wait before the next try."""

    def __init__(self, wait_s: int = 60) -> None:
        super().__init__(f"wait {wait_s} s")
        self.wait_s = wait_s


class Tries:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        bus.on(TOPIC, self._hear)
        self._limiter = MovingWindowRateLimiter(SteadyStorage())
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()  # where each account has been signed in from

    def begin(self, account: str, address: str) -> None:
        """Count a try before it is made, so that many at once count too. Raises TooManyTries.

        `account` is the account's id, however its name is spelt; for unknown names a seal of the name.
        """
        asked: list[tuple[RateLimitItem, tuple[str, ...]]] = [(limit, (account, address)) for limit in TRIES_HERE]
        asked.append((TRIES_ADDRESS, (address,)))
        if (account, address) not in self._known:
            asked.append((TRIES_ACCOUNT, (account,)))
        full = [(limit, names) for limit, names in asked if not self._limiter.test(limit, *names)]
        if full:
            logger.warning("too many sign-ins for {!r} from {}", account, address)
            raise TooManyTries(max(self._wait_s(limit, names) for limit, names in full))
        self._note("begun", account, address)

    def leave(self, address: str) -> None:
        """Count a way to a provider. Raises TooManyTries."""
        if not self._limiter.hit(LEAVING_ADDRESS, "leaving", address):
            raise TooManyTries(self._wait_s(LEAVING_ADDRESS, ("leaving", address)))

    def failed(self, account: str, address: str) -> None:
        self._note("failed", account, address)

    def succeeded(self, account: str, address: str) -> None:
        self._note("succeeded", account, address)

    def _note(self, what: str, account: str, address: str) -> None:
        self._bus.tell(TOPIC, json.dumps([what, account, address]))
        self._count(what, account, address)

    def _hear(self, told: str) -> None:
        """Somebody has tried at another process."""
        what, account, address = json.loads(told)
        self._count(what, account, address)

    def _count(self, what: str, account: str, address: str) -> None:
        match what:
            case "begun":
                for limit in TRIES_HERE:
                    self._limiter.hit(limit, account, address)
            case "failed":
                self._limiter.hit(TRIES_ACCOUNT, account)
                self._limiter.hit(TRIES_ADDRESS, address)
            case "succeeded":
                self._forgive(account, address)

    def _forgive(self, account: str, address: str) -> None:
        for limit in TRIES_HERE:
            self._limiter.clear(limit, account, address)
        self._known[account, address] = None
        self._known.move_to_end((account, address))
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)

    def _wait_s(self, limit: RateLimitItem, names: tuple[str, ...]) -> int:
        return max(1, math.ceil(self._limiter.get_window_stats(limit, *names).reset_time - time.monotonic()))
