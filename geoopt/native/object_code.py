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


def cached(text: str, processor: Processor, vectorise: bool = False) -> bytes | None:
    """Object code that `compiled` has made before."""
    return load(_name(text, processor, vectorise))


def compiled(text: str, processor: Processor, vectorise: bool = False) -> bytes:
    """Object code, which is in the cache from then on. vectorise : loops that are written number by number"""
    with _LOCK:
        module, machine = _optimised(text, processor, vectorise)
        code = machine.emit_object(module)
    store(_name(text, processor, vectorise), code)
    return code


def _name(text: str, processor: Processor, vectorise: bool) -> str:
    """geoopt's own loops are in a folder of their own, so that either may be deleted without the other."""
    found = key(text, *processor, llvmlite.__version__)
    return f"loops/{found}" if vectorise else found


def loaded(code: bytes, functions: list[str]) -> tuple[object, np.ndarray]:
    """The engine that holds some object code, and the addresses of functions."""
    with _LOCK:
        linker = llvm.Target.from_default_triple().create_target_machine(codemodel="jitdefault")
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), linker)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        addresses = [engine.get_function_address(name) for name in functions]
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


def assembly(text: str, processor: Processor) -> str:
    """A processor's assembly for a module's text, for reading."""
    with _LOCK:
        module, machine = _optimised(text, processor, False)
        return machine.emit_assembly(module)
