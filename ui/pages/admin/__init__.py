"""The administrators' pages: what happens now (/admin), what can be set, how it was, accounts, the model, and the
audit trail.

Each part is a file of its own; `administrator.py` holds what all of them ask before they do anything.
"""

from nicegui import ui

from ui.desk import Desk
from ui.pages.admin.administrator import administration
from ui.pages.admin.audit import AuditTrail
from ui.pages.admin.downloads import register as register_downloads
from ui.pages.admin.erasures import Erasures
from ui.pages.admin.models import Models
from ui.pages.admin.over_time import OverTime
from ui.pages.admin.overview import Overview
from ui.pages.admin.people import People
from ui.pages.admin.ranges import Ranges
from ui.pages.admin.steer import Steering
from ui.theme import BUILT_WITHIN_S


def register(desk: Desk) -> None:
    ranges = Ranges(desk)
    register_downloads(desk, ranges)

    @ui.page("/admin", response_timeout=BUILT_WITHIN_S)
    async def overview() -> None:
        with administration(desk, active="/admin") as admin:
            await Overview(admin).build()

    @ui.page("/admin/steer", response_timeout=BUILT_WITHIN_S)
    async def steer() -> None:
        with administration(desk, active="/admin/steer") as admin:
            await Steering(admin).build()

    @ui.page("/admin/history", response_timeout=BUILT_WITHIN_S)
    async def history() -> None:
        with administration(desk, active="/admin/history") as admin:
            await OverTime(admin, ranges).build()

    @ui.page("/admin/people", response_timeout=BUILT_WITHIN_S)
    async def people() -> None:
        with administration(desk, active="/admin/people") as admin:
            await Erasures(admin).build()
            await People(admin).build()

    @ui.page("/admin/model", response_timeout=BUILT_WITHIN_S)
    async def model() -> None:
        with administration(desk, active="/admin/model") as admin:
            Models(admin).build()

    @ui.page("/admin/audit", response_timeout=BUILT_WITHIN_S)
    async def audit() -> None:
        with administration(desk, active="/admin/audit") as admin:
            await AuditTrail(admin).build()
