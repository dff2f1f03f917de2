"""Running generated code: compile and cache it, keep its memory, launch it.

Each module of a device has ``MACHINE``, ``describe()`` and ``vectors(options, dtype)``: see `pipeline.Device`.
"""

MODULES = {"cpu": "cpu", "cuda": "cuda", "cuda-on-host": "cuda_on_host"}  # by the name of a device
