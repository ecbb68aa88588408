"""The tables, as SQLModel classes. A change here needs a migration; a test compares the two.

Knows nothing of connections or threads. Rows never leave this package: each subject's file turns them into records.

Why JSON text for `messages` and `sampling`: both are written and read whole and never filtered by, `stop` is a list,
and a new sampling value needs no migration.
"""

from storage.models.base import Base as Base
from storage.models.base import PlainText as PlainText
from storage.models.base import plain as plain
from storage.models.exchanges import CUT_OFF as CUT_OFF
from storage.models.exchanges import LONG_WAIT as LONG_WAIT
from storage.models.exchanges import ConversationRow as ConversationRow
from storage.models.exchanges import ExchangeTable as ExchangeTable
from storage.models.exchanges import FeedbackRow as FeedbackRow
from storage.models.exchanges import IdempotencyRow as IdempotencyRow
from storage.models.exchanges import RemovedTurnRow as RemovedTurnRow
from storage.models.people import ApiKeyRow as ApiKeyRow
from storage.models.people import ErasureRow as ErasureRow
from storage.models.people import IdentityRow as IdentityRow
from storage.models.people import InviteRow as InviteRow
from storage.models.people import RecoveryCodeRow as RecoveryCodeRow
from storage.models.people import SessionRow as SessionRow
from storage.models.people import SignInLinkRow as SignInLinkRow
from storage.models.people import TemplateRow as TemplateRow
from storage.models.people import UserRow as UserRow
from storage.models.reviews import DailyUseRow as DailyUseRow
from storage.models.reviews import HoldRow as HoldRow
from storage.models.reviews import LabelRow as LabelRow
from storage.models.reviews import NoteRow as NoteRow
from storage.models.reviews import ReviewRow as ReviewRow
from storage.models.server import AuditRow as AuditRow
from storage.models.server import OptionRow as OptionRow
from storage.models.server import PlacesRow as PlacesRow
from storage.models.server import ProcessRow as ProcessRow
from storage.models.server import SampleRow as SampleRow
