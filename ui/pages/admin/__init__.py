"""The administrators' pages: what happens now and the limits (/admin), accounts, and the audit trail.

Each part is a file of its own; `administrator.py` holds what all of them ask before they do anything.
"""

from nicegui import ui

from ui.desk import Desk
from ui.pages.admin.administrator import administration
from ui.pages.admin.audit import AuditTrail
from ui.pages.admin.erasures import Erasures
from ui.pages.admin.overview import Overview
from ui.pages.admin.people import People


def register(desk: Desk) -> None:
    @ui.page("/admin")
    async def overview() -> None:
        with administration(desk, active="/admin") as admin:
            await Overview(admin).build()

    @ui.page("/admin/people")
    async def people() -> None:
        with administration(desk, active="/admin/people") as admin:
            await Erasures(admin).build()
            await People(admin).build()

    @ui.page("/admin/audit")
    async def audit() -> None:
        with administration(desk, active="/admin/audit") as admin:
            await AuditTrail(admin).build()
