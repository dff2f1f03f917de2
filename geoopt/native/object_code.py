"""Machine code of this processor from LLVM IR, by llvmlite: compiled, or found in the cache."""

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


def compiled(text: str, processor: Processor, vectorise: bool = False) -> tuple[bytes, bool]:
    """Object code, and whether it was in the cache. vectorise : loops that are written number by number"""
    name = key(text, *processor, llvmlite.__version__, *["vectorised"] * vectorise)
    with _LOCK:
        found = load(name)
        code = found or _compile(text, processor, vectorise)
        if found is None:
            store(name, code)
    return code, found is not None


def loaded(code: bytes, processor: Processor, functions: int) -> tuple[object, np.ndarray]:
    """The engine that holds some object code, and the addresses of its functions."""
    with _LOCK:
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine(processor))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        addresses = [engine.get_function_address(f"k{i}") for i in range(functions)]
    return engine, np.array(addresses, np.int64)


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


def _compile(text: str, processor: Processor, vectorise: bool) -> bytes:
    module, machine = _optimised(text, processor, vectorise)
    return machine.emit_object(module)


def assembly(text: str, processor: Processor) -> str:
    """A processor's assembly for a module's text, for reading."""
    with _LOCK:
        module, machine = _optimised(text, processor, False)
        return machine.emit_assembly(module)
