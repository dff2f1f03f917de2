"""The window of the ARAP app."""

from __future__ import annotations

from geoopt.apps.arap import ENERGIES, LOCAL_STEPS, Arap
from geoopt.apps.window import Window


class ArapWindow(Window):
    """Iterations per frame, the energy, and who does the local step, for comparison."""

    title = "geoopt arap"
    simulation: Arap

    def controls(self) -> None:
        simulation = self.simulation
        simulation.iterations = round(self.slider("iterations", simulation.iterations, 1, 30))
        energy = self.choice(ENERGIES, simulation.energy)
        if energy != simulation.energy:
            self.attempt(lambda: simulation.use_energy(energy))
        self.say("local step by")
        simulation.local_step = self.choice(LOCAL_STEPS, simulation.local_step)
        if simulation.is_refactoring:
            self.say("factoring the new constraints ...")
