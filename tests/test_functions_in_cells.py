"""Functions that notebooks define in their cells, by hand."""

import numpy as np
import pandas as pd
import pytest
from notebook_code import definitions


def test_ranks_are_over_the_rows_that_every_encoder_has():
    wide = pd.DataFrame({"a": [80.0, 70.0, 99.0], "b": [81.0, 60.0, np.nan], "c": [10.0, 10.0, 10.0]})
    assert definitions("50_blurb").mean_ranks(wide).to_dict() == {"a": 1.5, "b": 1.5, "c": 3.0}


def test_two_main_effects_and_an_interaction_of_four_scores():
    columns = pd.MultiIndex.from_product([["Wiki+Books", "PubMed"], ["word-piece", "whole-word"]])
    wide = pd.DataFrame([[70.0, 71.0, 74.0, 78.0], [70.0, np.nan, 74.0, 78.0]], columns=columns)
    found = definitions("51_vocabulary_and_masking").effects_of(wide)
    assert found.to_dict("records") == [{"vocabulary": 5.5, "masking": 2.5, "interaction": 3.0}]


def test_slopes_are_for_ten_times_as_much_and_need_two_places():
    points = pd.DataFrame({"x": [10, 100, 1000, np.nan], "ours": [50.0, 52.0, 54.0, 99.0]})
    slope = definitions("41_more_text_longer_training").slope
    assert slope(points) == pytest.approx(2) and np.isnan(slope(points[:1]))
    slope = definitions("42_gain_by_training_size").slope
    assert slope(points["x"], points["ours"]) == pytest.approx(2)
    assert np.isnan(slope(points["x"], np.nan * points["ours"]))
