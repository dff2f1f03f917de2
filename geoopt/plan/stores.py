"""Stores: what a kernel does with the value of a root."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from .address import Address, Positions

ROW_TERMS = 8  # the most entries of a row
WRITES = {0: "=", 1: "+=", -1: "-="}  # by how often a store adds its value


@dataclass(frozen=True, slots=True)
class Store:
    """Each value goes to an entry of its own.

    adds : 1 adds the value to what is there, -1 subtracts it, 0 puts it in its place
    """

    address: Address
    adds: int = 0

    @property
    def buffer(self) -> int:
        return self.address.buffer

    @property
    def loop(self) -> int | None:
        """The loop in which there is a value per term; None where there is one per member."""
        return self.address.loop

    def tables(self) -> list[int]:
        """The buffers that tell where values go."""
        return self.address.tables()

    def of_members(self) -> list[int]:
        """The tables with an entry per member, but for the address's."""
        return []

    def at(self, address: Address, number: Callable[[int], int]) -> Store:
        """To another address. number : of its other tables among others"""
        return replace(self, address=address)

    def entries(self, members: Positions, terms: Positions | None, of_member: np.ndarray | None) -> np.ndarray:
        """Where each value goes. members : where these are;  terms, of_member : where those of the loop are, and the
        member of each"""
        return self.address.entries(members if terms is None else terms)

    def __str__(self) -> str:
        return f"{self.address} {WRITES[self.adds]}"


@dataclass(frozen=True, slots=True)
class RowStore(Store):
    """The values of all terms of a member are a row of neighbours, but that they leave out one entry, the hole, and may
    leave out entries at the end. The address, of each member, is that of the first.

    within : the loop
    bits : the table with a number of 16 bits per member: bit k of its lower half tells that term k comes before the
        hole, bit k of its upper half, that entry k is written
    """

    within: int = field(kw_only=True)
    bits: int = field(kw_only=True)

    @property
    def loop(self) -> int:
        return self.within

    def tables(self) -> list[int]:
        return [*self.address.tables(), self.bits]

    def of_members(self) -> list[int]:
        return [self.bits]

    def at(self, address: Address, number: Callable[[int], int]) -> RowStore:
        return replace(self, address=address, bits=number(self.bits))

    def entries(self, members: Positions, terms: Positions | None, of_member: np.ndarray | None) -> np.ndarray:
        assert terms is not None and terms.along is not None and of_member is not None
        before = members.table(self.bits)[members.listed][of_member] >> terms.along & 1
        return self.address.entries(members)[of_member] + terms.along + (before == 0)

    def __str__(self) -> str:
        return f"{self.address}, row b{self.bits}[i] {WRITES[self.adds]}"
