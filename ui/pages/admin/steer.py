"""What an administrator can set while the server runs: the intake, the limits, the banner."""

from ui.pages.admin.administrator import Administrator
from ui.pages.admin.banner_form import BannerForm
from ui.pages.admin.intake_form import IntakeForm
from ui.pages.admin.limits_form import LimitsForm


class Steering:
    def __init__(self, admin: Administrator) -> None:
        self.admin = admin

    async def build(self) -> None:
        IntakeForm(self.admin)
        LimitsForm(self.admin)
        BannerForm(self.admin)
