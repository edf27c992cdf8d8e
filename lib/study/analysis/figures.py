"""The figures of single pages."""

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from lib.study.figures import new_figure, save  # noqa: F401  (pages save through this module)


def draw_attention(table: pd.DataFrame) -> Figure:
    """A panel an example and model: the attention on each word, written in its pieces; printed words hatched.

    `table`: from attention.build, of which the lines with attention are drawn; the word asked from is marked by an
    arrow.
    """
    shown = table[table["attention"].notna()]
    examples, models = (list(dict.fromkeys(shown[name])) for name in ("example", "model"))
    heights = [shown[shown["example"] == example]["place"].nunique() for example in examples]
    figure, axes = new_figure(8, 1 + 0.2 * sum(heights), len(models), len(examples))
    axes[0, 0].get_gridspec().set_height_ratios(heights)
    colors = sns.color_palette("colorblind")
    for panels, example in zip(axes, examples, strict=True):
        most = shown.loc[shown["example"] == example, "attention"].max()
        for panel, model in zip(panels, models, strict=True):
            words = shown[(shown["example"] == example) & (shown["model"] == model)]
            marks = ["//" if printed else "" for printed in words["printed"]]
            labels = [("→ " if word["asked"] else "") + word["pieces"] for word in words.to_dict("records")]
            panel.barh(range(len(words)), words["attention"], hatch=marks, color=colors[models.index(model)])
            panel.set(yticks=range(len(words)), yticklabels=labels, xlabel="attention", xlim=(0, 1.05 * most))
            panel.set_title(f"{example}: {model}", fontsize=8)
            panel.tick_params(axis="y", labelsize=7)
            panel.invert_yaxis()
    return figure
