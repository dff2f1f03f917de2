"""The widgets of a window's panel, which remember where they are and what they say."""

from __future__ import annotations

from typing import Any

import numpy as np


class Panel:
    """Widgets of polyscope's panel, drawn anew in each turn of the window.

    places : the middle of each widget [pixels], by its label;  said : the lines of text of this turn
    """

    def __init__(self) -> None:
        self.places: dict[str, tuple[float, float]] = {}
        self.said: list[str] = []

    def button(self, label: str) -> bool:
        """Whether it was pressed."""
        return self._placed(label, imgui().Button(label))

    def checkbox(self, label: str, is_on: bool) -> bool:
        """Whether it is on now."""
        return self._placed(label, imgui().Checkbox(label, is_on))[1]

    def choice(self, labels: tuple[str, ...], chosen: str) -> str:
        """Which of them is chosen now; they are side by side."""
        for number, label in enumerate(labels):
            if number:
                imgui().SameLine()
            if self._placed(label, imgui().RadioButton(label, label == chosen)):
                chosen = label
        return chosen

    def slider(self, label: str, value: float, low: float, high: float) -> float:
        """Its value now."""
        return self._placed(label, imgui().SliderFloat(label, value, low, high, "%.4g"))[1]

    def text(self, label: str, value: str) -> str:
        """What is in the field now; it leaves room for buttons beside it."""
        imgui().SetNextItemWidth(110)
        return self._placed(label, imgui().InputText(label, value))[1]

    def plot(self, label: str, values: list[float]) -> None:
        """Numbers over time."""
        imgui().PlotLines(label, np.array(values, np.float32), graph_size=(0.0, 60.0))

    def bar(self, fraction: float, text: str) -> None:
        """A bar, filled to a fraction of its width, with a text."""
        imgui().ProgressBar(fraction, (-1.0, 0.0), text)

    def say(self, text: str) -> None:
        """A line, or more where it is long."""
        self.said.append(text)
        imgui().TextWrapped(text)

    def _placed(self, label: str, answer: Any) -> Any:
        low, high = imgui().GetItemRectMin(), imgui().GetItemRectMax()
        self.places[label] = ((low[0] + high[0]) / 2, (low[1] + high[1]) / 2)
        return answer


def imgui() -> Any:
    """Polyscope's bindings of Dear ImGui; importing them opens nothing."""
    import polyscope.imgui as psim

    return psim
