"""What a call of a program of three numbers costs within torch: ``python -m benchmarks.torch_overhead``.

Beside the same function of torch's own, and the program as its users call it in a `torch.autograd.Function`: medians of
rounds that take turns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import geoopt
import geoopt.torch
from geoopt.apps.timing import alternate


def twisted(x: Any) -> Any:
    return np.stack([x[1] * x[2], x[0] * x[0], np.sin(x[0])])


def of_torch(x: Any) -> Any:
    return torch.stack([x[1] * x[2], x[0] * x[0], torch.sin(x[0])])


class ByHand(torch.autograd.Function):
    """A program and that of its slopes, through NumPy."""

    forward_program = geoopt.compile(twisted, np.ones(3), dtype=np.float32)
    backward_program = geoopt.compile(geoopt.vjp(twisted), np.ones(3), np.ones(3), dtype=np.float32)

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.from_numpy(ByHand.forward_program(x.detach().numpy()))

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(ByHand.backward_program(ctx.saved_tensors[0].numpy(), slope.numpy()))


def backward(function: Any, x: torch.Tensor) -> Any:
    return torch.autograd.grad(function(x), x, torch.ones(3))


def main() -> None:
    torch.set_num_threads(1)
    x, on_host = torch.ones(3), np.ones(3, np.float32)
    wanted = x.clone().requires_grad_()
    prepared, by_hand = geoopt.torch.function(twisted, np.ones(3)), ByHand.apply
    calls = {
        "the program alone": lambda: ByHand.forward_program(on_host),
        "torch's own": lambda: of_torch(x),
        "geoopt.torch.function": lambda: prepared(x),
        "autograd.Function by hand": lambda: by_hand(x),
        "of a tensor that requires slopes": lambda: prepared(wanted),
        "  and back": lambda: backward(prepared, wanted),
        "  and back, torch's own": lambda: backward(of_torch, wanted),
        "  and back, by hand": lambda: backward(by_hand, wanted),
    }
    for name, timing in alternate(calls, rounds=50).items():
        print(f"{name:34} {1e6 * timing.median:6.1f} µs")


if __name__ == "__main__":
    main()
