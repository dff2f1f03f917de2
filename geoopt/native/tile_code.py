"""LLVM IR for the instructions of `tiles`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .code import Code
from .tile_vectors import Tiles, Transposed
from .tiles import (
    LANES,
    MOST,
    MOST_COLUMNS,
    NEGATIVE,
    SUBTRACT,
    add_scattered,
    apply,
    apply_transposed,
    eliminate,
    invert,
    subtracted_product,
)
from .values import INT, Value, constant


def _unrolled(code: Code, count: Value, write: Callable[[int], None]) -> None:
    """The code for each number of strips or sides that there may be, of which one is chosen when it runs."""
    after = code.name()
    for number in range(1, MOST + 1):
        yes, no = code.name(), code.name()
        code.branch(Value("bool", (code.let(f"icmp eq i64 {count.text}, {number}"),)), yes, no)
        code.label(yes)
        write(number)
        code.go(after)
        code.label(no)
    code.label(after)


def _summed(t: Tiles, start: list[list[str]], A: str, step: str, B: str, depth: str) -> list[list[str]]:
    """Columns of tiles, by strip, less products of the strips at A with that at B."""
    strips = len(start)
    flat = [v for strip in start for v in strip]
    with t.summing(depth, flat) as (p, sums, results):
        offset = t.whole("mul", p, LANES)
        rows = [t.load(t.at(A, t.whole("add", offset, t.whole("mul", step, i)))) for i in range(strips)]
        place = t.at(B, offset)
        factors = [t.splat(t.number(t.at(place, "0", j))) for j in range(LANES)]
        results += [t.subtracted(sums[i * LANES + j], rows[i], factors[j]) for i in range(strips) for j in range(LANES)]
    return [results[i * LANES : (i + 1) * LANES] for i in range(strips)]


def write_subtracted_product(code: Code, arguments: list[Value]) -> None:
    C, c, s, A, a, step, b, depth, strips = arguments
    t = Tiles(code, A)

    def write(count: int) -> None:
        zeros = [["zeroinitializer"] * LANES for _ in range(count)]
        found = _summed(t, zeros, t.at(A, a.text), step.text, t.at(A, b.text), depth.text)
        for i, strip in enumerate(found):
            number, after = t.whole("add", s.text, i), t.whole("add", s.text, i + 1)
            begin = t.whole("mul", t.whole("mul", number, after), LANES * LANES // 2)
            place = t.at(C, t.whole("add", c.text, begin))
            for j, column in enumerate(strip):
                t.store(column, t.at(place, "0", LANES * j))

    _unrolled(code, strips, write)


def _tile(t: Tiles, place: str) -> list[str]:
    return [t.load(t.at(place, "0", LANES * j)) for j in range(LANES)]


def write_eliminate(code: Code, arguments: list[Value]) -> None:
    A, a, step, b, depth, columns, strips = arguments
    t = Tiles(code, A)
    done = t.whole("mul", depth.text, LANES)
    first, factor = t.at(A, a.text), t.at(A, b.text)
    inverse = t.at(factor, done)

    def write(count: int) -> None:
        places = [t.at(first, t.whole("add", done, t.whole("mul", step.text, i))) for i in range(count)]
        found = _summed(t, [_tile(t, p) for p in places], first, step.text, factor, depth.text)
        for j in reversed(range(LANES)):
            factors = [t.splat(t.number(t.at(inverse, "0", LANES * p + j))) for p in range(j + 1)]
            for strip, place in zip(found, places, strict=True):
                column = t.times(strip[j], factors[j])
                for p in range(j):
                    column = t.added(column, strip[p], factors[p])
                _store_if_there(t, j, columns.text, column, place)

    _unrolled(code, strips, write)


def _store_if_there(t: Tiles, j: int, count: str, column: str, place: str) -> None:
    """A column of a tile that may have fewer."""
    yes, after = t.code.name(), t.code.name()
    t.code.branch(Value("bool", (t.code.let(f"icmp sgt i64 {count}, {j}"),)), yes, after)
    t.code.label(yes)
    t.store(column, t.at(place, "0", LANES * j))
    t.code.label(after)


def _unit(t: Tiles, lane: int) -> str:
    one, zero = (constant(x).text for x in (1.0, 0.0))
    return f"<{', '.join(f'{t.scalar} {one if i == lane else zero}' for i in range(LANES))}>"


def write_invert(code: Code, arguments: list[Value]) -> Value:
    A, a, depth, columns = arguments
    t = Tiles(code, A)
    strip, done = t.at(A, a.text), t.whole("mul", depth.text, LANES)
    place = t.at(strip, done)
    start = _tile(t, place)
    for j in range(LANES):
        is_there = code.let(f"icmp sgt i64 {columns.text}, {j}")
        start[j] = code.let(f"select i1 {is_there}, {t.vector} {start[j]}, {t.vector} {_unit(t, j)}")
    (found,) = _summed(t, [start], strip, "0", strip, depth.text)
    good, is_good = "0", "true"
    one, zero = (constant(x).text for x in (1.0, 0.0))
    roots, factors = [], []
    for j in range(LANES):
        pivot = t.lane(found[j], j)
        is_good = t.code.let(f"and i1 {is_good}, {t.code.let(f'fcmp ogt {t.scalar} {pivot}, {zero}')}")
        good = t.whole("add", good, t.code.let(f"zext i1 {is_good} to i64"))
        root = t.code.let(f"call {t.scalar} @llvm.sqrt.{t.suffix}({t.scalar} {pivot})")
        roots.append(t.splat(t.code.let(f"fdiv {t.scalar} {one}, {root}")))
        column = t.from_lane(t.times(found[j], roots[j]), j)
        factors.append(column)
        for other in range(j + 1, LANES):
            found[other] = t.subtracted(found[other], column, t.spread(column, other))
    inverse: list[str] = []
    for k in range(LANES):  # row k of the inverse is known after this turn; in the rows below, what is subtracted
        inverse.append(_unit(t, k))
        below = t.from_lane(factors[k], k + 1) if k + 1 < LANES else None
        for p in range(k + 1):
            scaled = t.times(inverse[p], roots[k])
            entry = t.spread(scaled, k)
            lanes = ", ".join(f"i32 {lane + LANES * (lane == k)}" for lane in range(LANES))
            kept = code.let(f"shufflevector {t.vector} {inverse[p]}, {t.vector} {scaled}, <8 x i32> <{lanes}>")
            inverse[p] = t.subtracted(kept, below, entry) if below else kept
    for j, column in enumerate(inverse):
        _store_if_there(t, j, columns.text, column, place)
    return Value(INT, (good,))


def write_add_scattered(code: Code, arguments: list[Value]) -> None:
    D, d, step, growth, U, u, R, r, shift, s, j0, j1 = arguments
    t = Tiles(code, D)
    first = t.whole("add", r.text, t.whole("mul", s.text, LANES))
    rows = []
    for lane in range(LANES):
        row = code.binary("-", code.entry(R, [Value(INT, (t.whole("add", first, lane),))]), shift).text
        number = t.whole("ashr", row, LANES.bit_length() - 1)
        strip = t.whole("mul", number, t.whole("add", step.text, t.whole("mul", growth.text, number)))
        rows.append(t.at(D, t.whole("add", d.text, t.whole("add", strip, t.whole("and", row, LANES - 1)))))
    with t.summing(t.whole("sub", j1.text, j0.text), []) as (turn, _, _):
        j = t.whole("add", turn, j0.text)
        column = code.binary("-", code.entry(R, [Value(INT, (t.whole("add", r.text, j),))]), shift).text
        offset, taken = t.whole("mul", column, LANES), t.at(U, t.whole("add", u.text, t.whole("mul", j, LANES)))
        for lane, row in enumerate(rows):
            place, value = t.at(row, offset), t.number(t.at(taken, "0", lane))
            total = code.let(f"fadd {t.scalar} {t.number(place)}, {value}")
            code.do(f"store {t.scalar} {total}, ptr {place}, align {t.size}")


def _store_product(t: Tiles, product: str, place: str, how: Value) -> None:
    if how.constant == SUBTRACT:
        product = t.code.let(f"fsub {t.vector} {t.load(place)}, {product}")
    elif how.constant == NEGATIVE:
        product = t.minus(product)
    t.store(product, place)


def _sides(t: Tiles, array: Value, first: Value, step: Value, count: int) -> list[str]:
    """Where something begins, in the plane of each right-hand side."""
    return [t.at(array, t.whole("add", first.text, t.whole("mul", step.text, r))) for r in range(count)]


def write_apply(code: Code, arguments: list[Value]) -> None:
    Y, y, y_step, A, a, X, x, x_step, depth, how, sides = arguments
    t = Tiles(code, A)
    strip = t.at(A, a.text)

    def write(count: int) -> None:
        right = _sides(t, X, x, x_step, count)
        with t.summing(depth.text, ["zeroinitializer"] * count) as (p, sums, results):
            entries = t.load(t.at(strip, t.whole("mul", p, LANES)))
            results += [t.added(sums[r], entries, t.splat(t.number(t.at(right[r], p)))) for r in range(count)]
        for product, place in zip(results, _sides(t, Y, y, y_step, count), strict=True):
            _store_product(t, product, place, how)

    _unrolled(code, sides, write)


def _sums_of_lanes(t: Tiles, values: list[str]) -> str:
    """The sum of the lanes of each of eight vectors, in a lane each."""
    for width in (1, 2, 4):  # pairs of vectors that hold sums side by side, of so many vectors each
        taken = [[0] * LANES, [0] * LANES]
        for lane in range(LANES):
            block, rest = lane // (2 * width) * (2 * width), lane % width
            of_second = LANES if lane & width else 0
            taken[0][lane], taken[1][lane] = block + rest + of_second, block + width + rest + of_second
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [t.plus(*(t.chosen(one, other, lanes) for lanes in taken)) for one, other in pairs]
    return values[0]


def write_apply_transposed(code: Code, arguments: list[Value]) -> None:
    Y, y, y_step, A, a, step, X, x, x_step, strips, how, columns, sides = arguments
    t = Tiles(code, A)
    room = f"%{code.name()}"
    code.variables.append(f"  {room} = alloca [{MOST_COLUMNS * MOST} x {t.vector}], align 64")

    def write(count: int) -> None:
        sums = Transposed(t, t.at(A, a.text), step.text, _sides(t, X, x, x_step, count))
        places = _sides(t, Y, y, y_step, count)
        few, many, after = (code.name() for _ in range(3))
        code.branch(Value("bool", (code.let(f"icmp sle i64 {columns.text}, {LANES}"),)), few, many)
        code.label(few)
        for products, place in zip(sums.in_registers(strips.text), places, strict=True):
            _store_product(t, _masked(t, _sums_of_lanes(t, products), columns.text), place, how)
        code.go(after)
        code.label(many)
        sums.in_memory(strips.text, columns.text, room)
        with t.summing(t.whole("sdiv", t.whole("add", columns.text, LANES - 1), LANES), []) as (turn, _, _):
            done = t.whole("mul", turn, LANES)
            left = t.whole("sub", columns.text, done)
            for r, place in enumerate(places):
                first = t.whole("add", t.whole("mul", done, count), r)
                products = [sums.load(room, t.whole("add", first, j * count)) for j in range(LANES)]
                _store_product(t, _masked(t, _sums_of_lanes(t, products), left), t.at(place, done), how)
        code.label(after)

    _unrolled(code, sides, write)


def _masked(t: Tiles, value: str, count: str) -> str:
    """Zero in all lanes but the first ones."""
    lanes = ", ".join(f"i64 {lane}" for lane in range(LANES))
    number = t.code.let(f"insertelement <8 x i64> poison, i64 {count}, i64 0")
    number = t.code.let(f"shufflevector <8 x i64> {number}, <8 x i64> poison, <8 x i32> zeroinitializer")
    is_there = t.code.let(f"icmp slt <8 x i64> <{lanes}>, {number}")
    return t.code.let(f"select <8 x i1> {is_there}, {t.vector} {value}, {t.vector} zeroinitializer")


WRITERS: dict[Any, Callable[[Code, list[Value]], Value | None]] = {
    subtracted_product: write_subtracted_product,
    eliminate: write_eliminate,
    invert: write_invert,
    add_scattered: write_add_scattered,
    apply: write_apply,
    apply_transposed: write_apply_transposed,
}
