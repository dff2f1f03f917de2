"""The window of the cloth app."""

from __future__ import annotations

import numpy as np

from geoopt.apps.cloth import ClothSimulation
from geoopt.apps.upright import AXES
from geoopt.apps.window import GREY, Window
from geoopt.operators import edge_lengths

NEARLY_LONGEST = 0.95  # share of the edges that are shorter than the one that tells how far inside obstacles are drawn
SLIDERS = {  # of the material: lowest and highest
    "stretch": (50.0, 5000.0),
    "shear": (10.0, 2000.0),
    "bending": (0.0, 1e-2),
    "damping": (0.0, 0.2),
    "friction": (0.0, 1.0),
    "gravity": (0.0, 20.0),
}


class ClothWindow(Window):
    """The material, wind, and energy over time."""

    title = "geoopt cloth"
    simulation: ClothSimulation

    def _register(self) -> None:
        super()._register()
        edge = float(np.quantile(edge_lengths(self.simulation.V, self.simulation.F), NEARLY_LONGEST))
        for number, obstacle in enumerate(self.simulation.obstacles):
            V, F = obstacle.surface(edge)
            self._registered(f"obstacle {number}", V, F, GREY)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = super().bounds()
        low[AXES[self.simulation.up][2]] -= 0.55 * np.ptp(self.simulation.V, axis=0).max()
        return low, high

    def controls(self) -> None:
        material = self.simulation.material
        for name, (low, high) in SLIDERS.items():
            setattr(material, name, self.slider(name, getattr(material, name), low, high))
        winds = zip("xyz", material.wind, strict=True)
        material.wind = np.array([self.slider(f"wind {axis}", speed, -20.0, 20.0) for axis, speed in winds])
        if self.frames:
            self.plot("energy", [frame.measures["energy"] for frame in self.frames])
            last = self.frames[-1].measures
            self.say(f"stretch {last['stretch']:.3f}, {last['contacts']:.0f} contacts, {last['steps']:.0f} steps")
