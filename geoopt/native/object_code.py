"""Machine code of this processor from LLVM IR, by llvmlite: compiled or found in the cache, and held to be run."""

from __future__ import annotations

import functools
import threading

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from .cache import key, load, store

_LOCK = threading.Lock()  # several steps of llvmlite's, each of which locks for itself, belong together


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
    return key(*processor, llvmlite.__version__, *texts)


def cached(text: str, processor: Processor) -> bytes | None:
    """Object code of a program that was compiled before."""
    return load(name(processor, text))


def compiled(text: str, processor: Processor) -> bytes:
    """Object code of a program, which is in the cache from then on."""
    code = optimised(text, processor)
    store(name(processor, text), code)
    return code


def optimised(text: str, processor: Processor, vectorise: bool = False) -> bytes:
    """Object code. vectorise : loops that are written number by number"""
    with _LOCK:
        module, machine = _optimised(text, processor, vectorise)
        return machine.emit_object(module)


class Engine:
    """Holds object code where it can be run. Making one takes ten times as long as adding to one."""

    def __init__(self) -> None:
        with _LOCK:
            linker = llvm.Target.from_default_triple().create_target_machine(codemodel="jitdefault")
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), linker)

    def add(self, code: bytes, functions: list[str]) -> np.ndarray:
        """The addresses of functions of some object code, whose names no other code of the engine has."""
        with _LOCK:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            self._engine.finalize_object()
            return np.array([self._engine.get_function_address(name) for name in functions], np.int64)


def _target_machine(processor: Processor) -> llvm.TargetMachine:
    name, features = processor
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=name, features=features, opt=3, codemodel="jitdefault")


def _optimised(text: str, processor: Processor, vectorise: bool) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    machine = _target_machine(processor)
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_default_triple()
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization, tuning.slp_vectorization = vectorise, False
    tuning.loop_unrolling = not vectorise  # takes a third of the time, and gains nothing
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return module, machine


def assembly(text: str, processor: Processor) -> str:
    """A processor's assembly for a module's text, for reading."""
    with _LOCK:
        module, machine = _optimised(text, processor, False)
        return machine.emit_assembly(module)
