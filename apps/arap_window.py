"""The window of the ARAP app."""

from __future__ import annotations

from geoopt.apps.arap import Arap
from geoopt.apps.window import Window


class ArapWindow(Window):
    """Iterations per frame, and a switch to NumPy's local step for comparison."""

    title = "geoopt arap"
    simulation: Arap

    def controls(self) -> None:
        simulation = self.simulation
        simulation.iterations = round(self.slider("iterations", simulation.iterations, 1, 30))
        simulation.is_reference = self.checkbox("local step by NumPy", simulation.is_reference)
        if simulation.is_refactoring:
            self.say("factoring the new constraints ...")
