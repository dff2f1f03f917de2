"""How threads share the tasks of a call, in LLVM IR: three functions that know neither Python nor a system's threads.

``run(program, buffers, begin, end)``   runs some tasks, one after the other
``lead(board, program, buffers)``       runs all tasks, with the help of whoever comes
``help(board, helper)``                 helps all calls, for ever

Tasks come in phases, those of a phase in parts. The leader opens one phase after the other, runs the first part, and
then whatever part is left; helpers take parts likewise. A *ticket* on the board holds the number of the open phase, of
all since the start, and below it how many of its parts nobody has taken. Who counts it down in one step has taken a
part, and until that is finished, the call stays; nothing of a call is looked at before. So the leader waits for a part
that somebody has begun, never for a thread that has begun nothing: where other processes use the cores, that one may
not run for milliseconds, and a parallel loop of OpenMP, which ends with a barrier, takes as long.

A helper looks for parts while a call is under way and for some microseconds after it; then it sleeps on a lock of its
own, which the next leader releases. One that finds itself on the leader's core does not hold that up: it naps.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable

from .lines import Lines, Loop

WORDS = 8  # in a line of memory: what several threads write lies in lines of its own
# places in the board, in words
TICKET, FINISHED = 0, WORDS
PROGRAM, BUFFERS, PHASE, CORE = range(2 * WORDS, 2 * WORDS + 4)
HELPERS, NEVER = range(3 * WORDS, 3 * WORDS + 2)
BOARD = 4 * WORDS
# ... in a program: addresses of arrays, but for what is counted
KERNELS, TASKS, FIELDS, BOUNDS, FIRST, PHASES, WANTED = range(7)
# ... and in a helper
ASLEEP, BELL, HELPER = 0, 1, WORDS

PATIENCE = 2000  # turns of some 20 ns each, before a thread that waits takes naps
NAP = 50  # microseconds
REFUSALS = 20  # naps of a helper on the leader's core, before it helps all the same
SHIFT = 32  # bits of a ticket that count parts
FOREVER = 2**62
TIMED = "i32 @PyThread_acquire_lock_timed"  # without the interpreter's lock, on every system


def crew() -> str:
    """The module's text."""
    functions = (
        ("void @run(ptr %program, ptr %buffers, i64 %begin, i64 %end)", _run),
        ("internal void @part(ptr %program, ptr %buffers, i64 %phase, i64 %left)", _part),
        ("internal i1 @take(ptr %board)", _take),
        ("internal void @wait(ptr %board, i64 %turn)", _wait),
        ("internal i64 @core()", _core),
        ("void @lead(ptr %board, ptr %program, ptr %buffers)", _lead),
        ("void @help(ptr %board, ptr %helper)", _help),
    )
    others = [f"{TIMED}(ptr, i64, i32)", "void @PyThread_release_lock(ptr)", *_pause(), *_own_core()]
    texts = [*(f"declare {other}" for other in others), *(_function(head, body) for head, body in functions)]
    return "\n\n".join(texts) + "\n"


def _pause() -> list[str]:
    """What tells a processor that a thread does nothing but look, where there is something."""
    return ["void @llvm.x86.sse2.pause()"] if platform.machine() in ("x86_64", "AMD64") else []


def _own_core() -> list[str]:
    """What tells on which core a thread runs."""
    return ["i32 @sched_getcpu()"] if sys.platform == "linux" else []


def _function(head: str, body: Callable[[Lines], str]) -> str:
    code = Lines()
    result = body(code)
    return "\n".join([f"define {head} {{", "entry:", *code.lines, f"  ret {result}", "}"])


def _run(code: Lines) -> str:
    kernels, tasks, fields = (
        code.address("%program", KERNELS),
        code.address("%program", TASKS),
        code.word("%program", FIELDS),
    )
    with code.loop("%begin", "%end") as t:
        task = code.at(tasks, code.index("mul", t.index, fields))
        kernel = code.at(kernels, code.index("shl", code.word(task), 1))  # its function, and where its buffers begin
        own = code.at("%buffers", code.word(kernel, 1))
        code.do(f"call void {code.address(kernel)}(ptr {own}, ptr {task})")
    return "void"


def _part(code: Lines) -> str:
    """The part that is so many parts before the end of a phase."""
    after = code.word(code.address("%program", FIRST), code.index("add", "%phase", 1))
    part = code.at(code.address("%program", BOUNDS), code.index("sub", after, "%left"))
    code.do(f"call void @run(ptr %program, ptr %buffers, i64 {code.word(part)}, i64 {code.word(part, 1)})")
    return "void"


def _take(code: Lines) -> str:
    """Whether a part was left; it is finished then, or another thread was faster."""
    ticket = _read(code, "%board", TICKET)
    left = code.index("and", ticket, 2**SHIFT - 1)
    is_some = code.compared("ne", left, 0)
    with code.when(is_some):
        place, fewer = code.at("%board", TICKET), code.index("sub", ticket, 1)
        changed = code.let(f"cmpxchg ptr {place}, i64 {ticket}, i64 {fewer} acq_rel monotonic")
        with code.when(code.let(f"extractvalue {{ i64, i1 }} {changed}, 1")):
            program, buffers = code.address("%board", PROGRAM), code.address("%board", BUFFERS)
            code.do(f"call void @part(ptr {program}, ptr {buffers}, i64 {code.word('%board', PHASE)}, i64 {left})")
            code.let(f"atomicrmw add ptr {code.at('%board', FINISHED)}, i64 1 release")
    return f"i1 {is_some}"


def _wait(code: Lines) -> str:
    """A moment; after many turns a nap, so that threads run that have no core: a lock that is never free tells time."""
    is_over = code.compared("uge", "%turn", PATIENCE)
    with code.when(is_over):
        code.let(f"call {TIMED}(ptr {code.address('%board', NEVER)}, i64 {NAP}, i32 0)")
    with code.when(code.let(f"xor i1 {is_over}, true")):
        for pause in _pause():
            code.do(f"call {pause}")
    return "void"


def _lead(code: Lines) -> str:
    _write(code, code.let("ptrtoint ptr %program to i64"), "%board", PROGRAM)
    code.do(f"store ptr %buffers, ptr {code.at('%board', BUFFERS)}")
    first = code.address("%program", FIRST)
    with code.loop(0, code.word("%program", PHASES)) as phase:
        parts = code.index("sub", code.word(first, code.index("add", phase.index, 1)), code.word(first, phase.index))
        others = code.index("sub", parts, 1)
        code.do(f"store i64 {phase.index}, ptr {code.at('%board', PHASE)}")
        _write(code, code.let("call i64 @core()"), "%board", CORE)
        _write(code, "0", "%board", FINISHED)
        number = code.index("add", code.index("lshr", _read(code, "%board", TICKET), SHIFT), 1)
        _write(code, code.index("or", code.index("shl", number, SHIFT), others), "%board", TICKET)
        with code.when(code.compared("eq", phase.index, 0)):
            _wake(code)  # there is something for them to do already
        code.do(f"call void @part(ptr %program, ptr %buffers, i64 {phase.index}, i64 {parts})")
        with code.loop(0, FOREVER) as turn:
            _leave_unless(code, turn, code.let("call i1 @take(ptr %board)"))
        with code.loop(0, FOREVER) as turn:
            _leave_unless(code, turn, code.compared("ne", _read(code, "%board", FINISHED), others))
            code.do(f"call void @wait(ptr %board, i64 {turn.index})")
    _write(code, "0", "%board", PROGRAM)
    return "void"


def _wake(code: Lines) -> None:
    """The helpers that are wanted and asleep. One that is about to fall asleep misses the call: so be it."""
    helpers = code.address("%board", HELPERS)
    with code.loop(0, code.word("%program", WANTED)) as number:
        helper = code.at(helpers, code.index("mul", number.index, HELPER))
        was_asleep = code.let(f"atomicrmw xchg ptr {code.at(helper, ASLEEP)}, i64 0 acq_rel")
        with code.when(code.compared("ne", was_asleep, 0)):
            code.do(f"call void @PyThread_release_lock(ptr {code.address(helper, BELL)})")


def _help(code: Lines) -> str:
    waited, refused = code.let("alloca i64"), code.let("alloca i64")  # turns, and naps

    def afresh() -> None:
        for count in (waited, refused):
            code.do(f"store i64 0, ptr {count}")

    afresh()
    with code.loop(0, FOREVER):
        turn, naps = code.word(waited), code.word(refused)
        is_in_the_way = code.let(f"and i1 {_is_on_its_core(code)}, {code.compared('ult', naps, REFUSALS)}")
        code.do(f"store i64 {code.index('add', turn, 1)}, ptr {waited}")
        code.do(f"store i64 {code.index('add', naps, code.let(f'zext i1 {is_in_the_way} to i64'))}, ptr {refused}")
        with code.when(code.let(f"xor i1 {is_in_the_way}, true")):
            with code.when(code.let("call i1 @take(ptr %board)")):
                afresh()
        turns = code.let(f"select i1 {is_in_the_way}, i64 {PATIENCE}, i64 {code.word(waited)}")
        is_over = code.compared("eq", _read(code, "%board", PROGRAM), 0)
        sleeps = code.let(f"and i1 {is_over}, {code.compared('uge', turns, PATIENCE)}")
        with code.when(sleeps):
            _write(code, "1", "%helper", ASLEEP)
            code.let(f"call {TIMED}(ptr {code.address('%helper', BELL)}, i64 -1, i32 0)")
            afresh()
        with code.when(code.let(f"xor i1 {sleeps}, true")):
            code.do(f"call void @wait(ptr %board, i64 {turns})")
    return "void"


def _is_on_its_core(code: Lines) -> str:
    """Whether this thread runs on the leader's core, as far as that is told."""
    own = code.let("call i64 @core()")
    is_same = code.compared("eq", own, _read(code, "%board", CORE))
    return code.let(f"and i1 {is_same}, {code.compared('sge', own, 0)}")


def _core(code: Lines) -> str:
    """On which core this thread runs; -1 where the system does not tell."""
    if not _own_core():
        return "i64 -1"
    core = code.let(f"call {_own_core()[0]}")
    return f"i64 {code.let(f'sext i32 {core} to i64')}"


def _leave_unless(code: Lines, loop: Loop, condition: str) -> None:
    code.leave(loop, code.let(f"xor i1 {condition}, true"))


def _read(code: Lines, array: str, place: int) -> str:
    """A number that other threads write: what they wrote before is seen afterwards."""
    return code.let(f"load atomic i64, ptr {code.at(array, place)} acquire, align 8")


def _write(code: Lines, value: str, array: str, place: int) -> None:
    code.do(f"store atomic i64 {value}, ptr {code.at(array, place)} release, align 8")
