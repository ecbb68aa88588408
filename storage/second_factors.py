"""The second step at sign-in: what a person's codes are checked against, which were used. Knows no secret, no code."""

from collections.abc import Iterable

import sqlalchemy as sa
from sqlmodel import Session, col, select

from storage.database import Database
from storage.models import RecoveryCodeRow, UserRow
from storage.records import SecondFactor


class SecondFactors:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, user_id: str) -> SecondFactor | None:
        """None: the person has no second step."""

        def work(session: Session) -> SecondFactor | None:
            row = session.get(UserRow, user_id)
            if row is None or not row.totp_nonce:
                return None
            count = select(sa.func.count()).where(col(RecoveryCodeRow.user_id) == user_id)
            return SecondFactor(nonce=row.totp_nonce, recovery_codes=session.exec(count).one())

        return await self._database.read(work)

    async def turn_on(self, user_id: str, nonce: str, step: int, code_hashes: Iterable[str]) -> bool:
        """Begin with this step as the newest that was used. False: there is a second step already."""
        without = sa.update(UserRow).where(col(UserRow.id) == user_id, col(UserRow.totp_nonce) == "")

        def work(session: Session) -> bool:
            if not session.exec(without.values(totp_nonce=nonce, totp_step=step)).rowcount:
                return False
            _replace_codes(session, user_id, code_hashes)
            return True

        return await self._database.write(work)

    async def turn_off(self, user_id: str) -> bool:
        """False: there was none."""
        with_one = sa.update(UserRow).where(col(UserRow.id) == user_id, col(UserRow.totp_nonce) != "")

        def work(session: Session) -> bool:
            _replace_codes(session, user_id, ())
            return session.exec(with_one.values(totp_nonce="", totp_step=0)).rowcount == 1

        return await self._database.write(work)

    async def use_step(self, user_id: str, step: int) -> bool:
        """Take the code of this step of time. False: it, or a newer one, was used before, also when two ask at once."""
        newer = sa.update(UserRow).where(col(UserRow.id) == user_id, col(UserRow.totp_step) < step)
        return await self._database.write(lambda session: session.exec(newer.values(totp_step=step)).rowcount == 1)

    async def use_recovery_code(self, user_id: str, code_hash: str) -> bool:
        """Use the code up. False: it is none of this person's, or was used before."""
        row = sa.delete(RecoveryCodeRow).where(
            col(RecoveryCodeRow.user_id) == user_id, col(RecoveryCodeRow.code_hash) == code_hash
        )
        return await self._database.write(lambda session: session.exec(row).rowcount == 1)

    async def renew_recovery_codes(self, user_id: str, code_hashes: Iterable[str]) -> None:
        await self._database.write(lambda session: _replace_codes(session, user_id, code_hashes))


def _replace_codes(session: Session, user_id: str, code_hashes: Iterable[str]) -> None:
    session.exec(sa.delete(RecoveryCodeRow).where(col(RecoveryCodeRow.user_id) == user_id))
    session.add_all(RecoveryCodeRow(user_id=user_id, code_hash=code_hash) for code_hash in code_hashes)
