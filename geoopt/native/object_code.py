"""Machine code of this processor from LLVM IR, by llvmlite: compiled or found in the cache, and held to be run."""

from __future__ import annotations

import functools
import threading

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from .cache import key

LARGEST = 1 << 20  # bytes of the programs in one engine, which stay while any of them, or the next one, needs it

FORMAT = "4"  # another one where the same texts come to mean other code

_LOCK = threading.RLock()  # several steps of llvmlite's, each of which locks for itself, belong together
_latest: Engine | None = None  # what programs are added to

Processor = tuple[str, str]  # its name and its features


@functools.cache
def host() -> Processor:
    """The processor's name and its features, in LLVM's words."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return llvm.get_host_cpu_name(), features + ",-prefer-256-bit"


def name(processor: Processor, *texts: str) -> str:
    """The key in the cache of object code for a processor that some texts decide."""
    return key(*processor, llvmlite.__version__, FORMAT, *texts)


def compiled(name: str, text: str, processor: Processor) -> bytes:
    """Object code of a program. Its functions k0, k1, ... have names there that those of no other program have;
    `placed` knows them."""
    return optimised(text.replace("@k", f"@{_prefix(name)}k"), processor)


def _prefix(name: str) -> str:
    return f"p{name}."


def optimised(text: str, processor: Processor, vectorise: bool = False) -> bytes:
    """Object code. vectorise : loops that are written number by number

    Programs have explicit vectors, and addresses outside of loops: LLVM's passes over them take as long as all else,
    and code without these is as fast (0.96 to 1.01 of the time on average, on AVX2 and AVX-512, in either type).
    """
    with _LOCK:
        module, machine = _parsed(text, processor)
        if vectorise:
            _vectorise(module, machine)
        return machine.emit_object(module)


class Engine:
    """Holds object code where it can be run, for as long as somebody refers to it."""

    def __init__(self) -> None:
        linker = llvm.Target.from_default_triple().create_target_machine(codemodel="jitdefault")
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), linker)
        self._known: dict[tuple[str, ...], np.ndarray] = {}
        self.size = 0  # bytes of code

    def add(self, code: bytes, functions: list[str]) -> np.ndarray:
        """The addresses of the functions of some object code, whose names no other code of the engine has."""
        key = tuple(functions)
        with _LOCK:
            if key not in self._known:
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
                self._engine.finalize_object()
                self._known[key] = np.array([self._engine.get_function_address(f) for f in functions], np.int64)
                self.size += len(code)
            return self._known[key]


def placed(name: str, code: bytes, functions: list[str]) -> tuple[Engine, np.ndarray]:
    """The engine that holds a program, and the addresses of its functions. Programs share engines, for making one takes
    ten times as long as adding to one."""
    global _latest
    with _LOCK:
        if _latest is None or _latest.size + len(code) > LARGEST:
            _latest = Engine()
        return _latest, _latest.add(code, [_prefix(name) + f for f in functions])


def _target_machine(processor: Processor) -> llvm.TargetMachine:
    name, features = processor
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=name, features=features, opt=3, codemodel="jitdefault")


def _parsed(text: str, processor: Processor) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    machine = _target_machine(processor)
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_default_triple()
    module.data_layout = str(machine.target_data)
    return module, machine


def _vectorise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization, tuning.slp_vectorization = True, False
    tuning.loop_unrolling = False  # takes a third of the time, and gains nothing
    builder = llvm.create_pass_builder(machine, tuning)
    manager = builder.getModulePassManager()
    manager.run(module, builder)
    llvm.NewPassManager._dispose(manager)  # which the class of managers of modules does not find when it is closed
    manager.detach()


def assembly(text: str, processor: Processor) -> str:
    """A processor's assembly for a module's text, for reading."""
    with _LOCK:
        module, machine = _parsed(text, processor)
        return machine.emit_assembly(module)
