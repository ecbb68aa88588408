"""What answers that keep to a schema are asked for."""

from typing import Literal

from pydantic import BaseModel


class City(BaseModel):
    """A city."""

    name: str
    country: Literal["France", "Spain", "Italy"]
    large: bool
