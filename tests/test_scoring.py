"""What predictions are worth: the code that decides it."""

import pytest

from lib import provenance


@pytest.mark.parametrize("module", ["finetuning", "baselines"])
def test_what_makes_a_score_is_in_the_fingerprint_of_a_run(module):
    found = provenance.reachable_modules([module], {"corpora"} | provenance.NEUTRAL)  # as its records have it
    assert {"metrics", "scoring", "heads", module} <= found
    assert not {"compare", "figures"} & found  # what is shown
