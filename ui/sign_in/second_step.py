"""The second step: six digits from an authenticator app (TOTP, RFC 6238), or a recovery code. Knows no pages.

The secret that the app holds is kept nowhere here: it is derived from the server's secret and a random nonce, and only
the nonce is stored. So a copy of the database opens nothing, and with another server secret no code fits any more.
"""

import secrets
import time
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyotp
import segno

from ui.seal import Seal, same

if TYPE_CHECKING:
    from storage import Store

ISSUER = "Qdesk"  # what the app calls it
STEP_S, DIGITS = 30, 6
AROUND = (0, -1, 1)  # steps whose codes fit: clocks differ, and typing takes its time
RECOVERY_CODES = 10
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that look alike


class SecondStep:
    def __init__(self, store: "Store", seal: Seal, clock: Callable[[], float] = time.time) -> None:
        self._factors, self._seal, self.clock = store.second_factors, seal, clock

    def new_nonce(self) -> str:
        return secrets.token_urlsafe(24)

    def secret(self, user_id: str, nonce: str) -> str:
        """What the app is given: 160 bits in base32."""
        return self._seal.derive("totp", f"{user_id}:{nonce}", 20)

    def address(self, name: str, secret: str) -> str:
        """The same as an address that the app reads from a QR code."""
        return pyotp.TOTP(secret).provisioning_uri(name=name, issuer_name=ISSUER)

    async def turn_on(self, user_id: str, nonce: str, code: str) -> list[str] | None:
        """Turn the second step on, if the code shows that the app has the secret: the recovery codes, to be shown once.

        None: the code does not fit.
        """
        step = self._step(self.secret(user_id, nonce), plain(code))
        if step is None:
            return None
        codes = _recovery_codes()
        turned = await self._factors.turn_on(user_id, nonce, step, (self._sealed(user_id, code) for code in codes))
        return codes if turned else None

    async def fits(self, user_id: str, code: str) -> bool:
        """Whether this is the person's code; it is used up by that. False too for who has no second step."""
        factor, code = await self._factors.of(user_id), plain(code)
        if factor is None:
            return False
        if len(code) != DIGITS:
            return await self._factors.use_recovery_code(user_id, self._sealed(user_id, code))
        step = self._step(self.secret(user_id, factor.nonce), code)
        return step is not None and await self._factors.use_step(user_id, step)

    async def recovery_codes_left(self, user_id: str) -> int:
        factor = await self._factors.of(user_id)
        return factor.recovery_codes if factor else 0

    async def new_recovery_codes(self, user_id: str) -> list[str]:
        """Ten others, to be shown once; the earlier ones are good no more."""
        codes = _recovery_codes()
        await self._factors.renew_recovery_codes(user_id, [self._sealed(user_id, code) for code in codes])
        return codes

    def _step(self, secret: str, code: str) -> int | None:
        """The step of time whose code this is. All are compared, whichever fits."""
        now, totp = int(self.clock() // STEP_S), pyotp.TOTP(secret)
        fitting = [now + offset for offset in AROUND if same(totp.generate_otp(now + offset), code)]
        return fitting[0] if fitting else None

    def _sealed(self, user_id: str, code: str) -> str:
        return self._seal("recovery code", f"{user_id}:{plain(code)}")


def plain(code: str) -> str:
    """A code as it is compared: without the spaces and dashes that people and apps put in, in plain digits."""
    usual = unicodedata.normalize("NFKC", code[:100]).casefold()
    return "".join(character for character in usual if character.isalnum())


# A QR code is dark on light in every theme, or cameras may not read it.
LOOK: dict[str, Any] = {"omitsize": True, "border": 4, "dark": "#000", "light": "#fff"}


def picture(address: str, title: str) -> str:
    """A QR code as SVG to be put into a page, as wide as it is given room. `title` is for who cannot see it."""
    return segno.make(address, error="m").svg_inline(**LOOK, svgclass="qr", title=title)


def picture_address(address: str) -> str:
    """The same as the address of a picture."""
    return segno.make(address, error="m").svg_data_uri(**LOOK)


def _recovery_codes() -> list[str]:
    """Each of about 50 bits, in two halves."""
    halves = [["".join(secrets.choice(LETTERS) for _ in range(5)) for _ in range(2)] for _ in range(RECOVERY_CODES)]
    return ["-".join(code) for code in halves]
