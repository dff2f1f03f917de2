"""Adding to outputs in LLVM IR: several members may add to one entry, so the lanes of a vector take turns."""

from __future__ import annotations

from ..plan import Access
from .llvm_memory import Memory


class Additions(Memory):
    """Statements that keep the values of a vector of members on the stack, then add them member by member."""

    def keep(self, root: int, value: str) -> None:
        """Put a root's values where `add_kept` finds them."""
        self.do(f"store {self.v.vector} {value}, ptr {self._kept(root)}")

    def _kept(self, root: int) -> str:
        return self.let(f"getelementptr {self.v.vector}, ptr %kept, i64 {root}")

    def kept_allocation(self) -> list[str]:
        """A statement for the function's entry."""
        return [f"  %kept = alloca [{len(self.kernel.roots)} x {self.v.vector}], align 64"] if self.kernel.added else []

    def add_kept(self, block: str) -> str:
        """The loop over the lanes, and the block after it."""
        if not self.kernel.added:
            return block
        tag = f"{self.prefix}add"
        count = str(self.v.lanes) if self.is_full else self.let("sub i64 %end, %i")
        self.outer += [
            f"  br label %{tag}.body",
            f"{tag}.body:",
            f"  %{tag}.lane = phi i64 [ 0, %{block} ], [ %{tag}.next, %{tag}.body ]",
        ]
        member = self.let(f"add i64 %i, %{tag}.lane")
        entries: dict[tuple, str] = {}
        for root, places in enumerate(self.kernel.writes):
            added = [a for a in places if a.adds]
            if added:
                at = self.let(
                    f"getelementptr [{self.v.lanes} x {self.v.scalar}], ptr %kept, i64 {root}, i64 %{tag}.lane"
                )
                value = self.let(f"load {self.v.scalar}, ptr {at}")
            for access in added:
                key = (access.table, access.stride)
                if key not in entries:
                    entries[key] = self._entry(access, member, frozenset())
                self._add(access, entries[key], value)
        self.outer += [
            f"  %{tag}.next = add i64 %{tag}.lane, 1",
            f"  %{tag}.more = icmp slt i64 %{tag}.next, {count}",
            f"  br i1 %{tag}.more, label %{tag}.body, label %{tag}.exit",
            f"{tag}.exit:",
        ]
        return f"{tag}.exit"

    def _add(self, access: Access, entry: str, value: str) -> None:
        at = self._address(access, entry, access.offset, frozenset())
        before = self.let(f"load {self.v.scalar}, ptr {at}")
        after = self.let(f"{'fadd' if access.adds > 0 else 'fsub'} {self.v.scalar} {before}, {value}")
        self.do(f"store {self.v.scalar} {after}, ptr {at}")
