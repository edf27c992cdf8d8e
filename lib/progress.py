"""Progress of a long cell: a line and a curve that update in place, and a file for --status."""

import os
import sys
import time
from pathlib import Path

from lib import artefacts

FILE = "STUDY_PROGRESS"  # environment variable: the file in which the runner expects the state
LINE_SECONDS, CURVE_SECONDS = 2.0, 10.0


class Progress:
    """A progress display of at most one line every LINE_SECONDS, however often `update` is called."""

    def __init__(self, what: str, curve: bool = False):
        self.what, self.curve = what, curve
        self.begun = self.shown = self.drawn = time.monotonic()
        self.first: int | None = None
        self.handles: dict[str, object] = {}

    def update(self, done: int, total: int, text: str = "", log: list[dict] | None = None) -> None:
        """Show that `done` of `total` steps are done; `log` rows are drawn as a curve if `curve` was set."""
        now = time.monotonic()
        if self.first is None:
            self.first = done - 1
        if done < total and now - self.shown < LINE_SECONDS:
            return
        self.shown = now
        seconds_left = (now - self.begun) / max(1, done - self.first) * (total - done)
        self.write(done, total, seconds_left)
        if "IPython" not in sys.modules or sys.modules["IPython"].get_ipython() is None:
            return
        line = f"{self.what}: {done} of {total} {text}" + (f", {seconds_left:.0f} s left" if done < total else "")
        self.show("line", {"text/plain": line})
        if self.curve and done == total and "curve" in self.handles:
            self.show("curve", {})  # the notebook draws the whole curve itself
        elif self.curve and log and now - self.drawn > CURVE_SECONDS:
            from matplotlib import pyplot  # here, because the runner imports this module and draws nothing

            self.drawn = now
            figure, axes = pyplot.subplots(figsize=(6, 3), layout="constrained")
            draw_log(axes, self.what, log)
            axes.legend(fontsize=7)
            self.show("curve", figure)
            pyplot.close(figure)

    def show(self, name: str, content) -> None:
        """Show content, or replace what is shown under this name."""
        from IPython.display import display  # here, because a machine that only trains has no IPython

        raw = isinstance(content, dict)
        if name in self.handles:
            self.handles[name].update(content, raw=raw)
        else:
            self.handles[name] = display(content, display_id=True, raw=raw)

    def write(self, done: int, total: int, seconds_left: float) -> None:
        if os.environ.get(FILE):
            artefacts.write_json(
                Path(os.environ[FILE]),
                {"what": self.what, "done": done, "total": total, "seconds_left": round(seconds_left)},
            )


def draw_log(axes, name: str, log: list[dict]) -> None:
    """Plot loss against tokens, with the held-out loss as markers if there is one."""
    tokens = [row["tokens"] for row in log]
    losses = [row["loss"] for row in log]
    line = axes.plot(tokens, losses, linewidth=1, label=f"{name}, training")[0]
    held_out = [row for row in log if "held-out loss" in row]
    if held_out:
        tokens = [row["tokens"] for row in held_out]
        losses = [row["held-out loss"] for row in held_out]
        axes.plot(tokens, losses, "o", color=line.get_color(), label=f"{name}, held out")
    axes.set(xlabel="tokens", ylabel="loss")
