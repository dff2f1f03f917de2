"""The statements of one vector of members in LLVM IR: where they go; how vectors are put together and taken apart."""

from __future__ import annotations

from .llvm_vectors import Vectors

WHOLE, TAIL, SEQUENCE = "f", "t", "s"  # prefixes of the bodies of a function, which start the names of all values
ROW = 4  # neighbours read together
LOADS = 256  # that LLVM may move past each other: what it does with those of a block takes time by the square of them


class Body:
    """``outer`` collects statements; inside a loop over terms (``loop``), what varies there goes to ``inner`` instead.

    prefix : `WHOLE`, `SEQUENCE` for a whole vector whose entries follow each other, or `TAIL` for the masked rest
    """

    def __init__(self, vectors: Vectors, declarations: dict[str, None], prefix: str):
        self.v, self.declarations = vectors, declarations
        self.prefix, self._percent = prefix, f"%{prefix}"
        self.is_full = prefix in (WHOLE, SEQUENCE)
        self.outer: list[str] = []
        self.inner: list[str] | None = None
        self.loop: int | None = None
        self._fresh = self._loads = 0
        self._rooms: list[str] = []

    def let(self, expression: str, loops: frozenset[int] = frozenset()) -> str:
        """Append an assignment where it belongs: inside the current loop if it varies there."""
        self._fresh += 1
        name = f"{self._percent}{self._fresh}"
        lines = self.outer if not loops or self.inner is None or self.loop not in loops else self.inner
        lines.append(f"  {name} = {expression}")
        if expression[:5] == "load ":
            self._loads += 1
            if self._loads % LOADS == 0:
                self.do('call void asm sideeffect "", ""()', loops)
        return name

    def do(self, statement: str, loops: frozenset[int] = frozenset()) -> None:
        """Append a statement without a value, likewise."""
        self._lines(loops).append(f"  {statement}")

    def _lines(self, loops: frozenset[int]) -> list[str]:
        return self.inner if self.inner is not None and self.loop in loops else self.outer

    def declare(self, text: str) -> None:
        self.declarations[f"declare {text}"] = None

    def room(self, vectors: int) -> str:
        """The address of some vectors on the stack."""
        name = f"%{self.prefix}room{len(self._rooms)}"
        self._rooms.append(f"  {name} = alloca [{vectors} x {self.v.vector}], align {self.v.alignment}")
        return name

    def allocations(self) -> list[str]:
        """Statements for the function's entry."""
        return self._rooms

    # -- vectors --------------------------------------------------------------------------------------

    def transposed(self, vectors: list[str], wanted: frozenset[int], loops: frozenset[int]) -> list[str]:
        """Transpose the 4×4 numbers that four vectors have in each four lanes; of the results those that are wanted."""
        quads = self.v.lanes // ROW
        low, high = _interleave(quads, 0), _interleave(quads, 1)
        firsts = {
            odd: (
                self.shuffle(vectors[0], vectors[1], pattern, loops),
                self.shuffle(vectors[2], vectors[3], pattern, loops),
            )
            for odd, pattern in ((0, low), (1, high))
            if wanted & {odd, odd + 2}
        }
        return [
            self.shuffle(*firsts[k % 2], _halves(quads, k // 2), loops) if k in wanted else "poison" for k in range(ROW)
        ]

    def interleaved(self, a: str, b: str, odd: int) -> str:
        """(a0 b0 a2 b2) or (a1 b1 a3 b3) of each four lanes."""
        return self.shuffle(a, b, _interleave(self.v.lanes // ROW, odd), frozenset())

    def part(self, vector: str, first: int, size: int, loops: frozenset[int]) -> str:
        """Neighbouring lanes of a vector: a shorter one, or a scalar."""
        v = self.v
        if size == 1:
            return self.let(f"extractelement {v.vector} {vector}, i64 {first}", loops)
        if size == v.lanes:
            return vector
        mask = ", ".join(f"i32 {k}" for k in range(first, first + size))
        pick = f"shufflevector {v.vector} {vector}, {v.vector} poison, <{size} x i32> <{mask}>"
        return self.let(pick, loops)

    def join(self, parts: list[str], width: int, loops: frozenset[int]) -> str:
        """One vector of some shorter ones."""
        while len(parts) > 1:
            kind = f"<{width} x {self.v.scalar}>"
            mask = ", ".join(f"i32 {k}" for k in range(2 * width))
            pairs = zip(parts[::2], parts[1::2], strict=True)
            joined = [
                self.let(f"shufflevector {kind} {a}, {kind} {b}, <{2 * width} x i32> <{mask}>", loops) for a, b in pairs
            ]
            parts, width = joined, 2 * width
        return parts[0]

    def shuffle(self, a: str, b: str, pattern: list[int], loops: frozenset[int]) -> str:
        v = self.v
        mask = ", ".join(f"i32 {k}" for k in pattern)
        return self.let(f"shufflevector {v.vector} {a}, {v.vector} {b}, <{v.lanes} x i32> <{mask}>", loops)


def zeros(lanes: int) -> str:
    return f"<{lanes} x i32> zeroinitializer"


def _interleave(quads: int, odd: int) -> list[int]:
    """(a0 b0 a2 b2) or (a1 b1 a3 b3) in each four lanes of two vectors a, b."""
    n = 4 * quads
    return [k for q in range(quads) for k in (4 * q + odd, n + 4 * q + odd, 4 * q + 2 + odd, n + 4 * q + 2 + odd)]


def _halves(quads: int, upper: int) -> list[int]:
    """(a0 a1 b0 b1) or (a2 a3 b2 b3) in each four lanes."""
    n, u = 4 * quads, 2 * upper
    return [k for q in range(quads) for k in (4 * q + u, 4 * q + u + 1, n + 4 * q + u, n + 4 * q + u + 1)]
