"""Instances: what is predicted for them, what a model reads, and the text as somebody wrote it."""

from conftest import each
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.benchmarks.instances import Labelled, Mention, Pair, Question, Relation, Sentence, Span

QUICK = settings(max_examples=25, deadline=None)
PAIR = Relation("1", "Iron binds HBA.", Mention("T1", "CHEMICAL", 0, 4), Mention("T2", "GENE", 11, 14), "false")
MASKED = Relation("1", "@GENE$ and\n@DISEASE$.", Mention("", "GENE", 0, 6), Mention("", "DISEASE", 11, 20), "1", True)


@each(
    ("instance", "inputs", "natural"),
    [
        (Sentence(["An", "ulcer"], ["O", "B"]), ["An ulcer"], ["An ulcer"]),
        (PAIR, ["@CHEMICAL$ binds @GENE$."], ["Iron binds HBA."]),
        (MASKED, ["@GENE$ and\n@DISEASE$."], ["and", "."]),
        (Pair("1", "One.", "Two.\nThree.", 2.0), ["One. Two.\nThree."], ["One.", "Two.", "Three."]),
        (Labelled("1", ("One.", "Two."), ()), ["One.", "Two."], ["One.", "Two."]),
        (
            Question("1", "Who?", ("I.", "He."), ("I",), (Span(0, 0, 1),)),
            ["Who? I.", "Who? He."],
            ["Who?", "I.", "He."],
        ),
        (Question("1", "Who?", (), ("I",), ()), [], ["Who?"]),
    ],
)
def test_what_is_read_of_an_instance(instance, inputs, natural):
    assert (instance.inputs, instance.natural) == (inputs, natural)


@each("dummy", ["@GENE$", "@CHEM-GENE$", "@DRUG$", "BC6ENTC", "bc6entg", "bc6other"])
def test_dummies_are_no_natural_text(dummy):
    masked = Relation("1", f"{dummy}. It {dummy}, or", Mention("", "GENE", 0, 1), Mention("", "GENE", 2, 3), "1", True)
    assert masked.natural == [". It", ", or"]


@QUICK
@given(st.text(), st.text())
def test_natural_texts_are_never_blank_and_lose_nothing_but_white_space(one, two):
    texts = Pair("1", one, two, "yes").natural
    assert all(text == text.strip() != "" and "\n" not in text for text in texts)
    assert "".join("".join(texts).split()) == "".join((one + two).split())


def test_what_is_to_be_predicted_can_be_counted():
    instances = [
        Sentence(["a", "b"], ["O", "B-x"]),
        Labelled("1", ("a",), ("x", "y")),
        Question("1", "a", ("b",), ("Two", "one"), ()),
        Pair("1", "a", "b", 2.5),
        PAIR,
    ]
    assert [instance.gold for instance in instances] == [("O", "B-x"), ("x", "y"), ("one", "two"), 2.5, "false"]
    assert len({instance.gold for instance in instances}) == 5


@each(
    ("first", "second", "expected"),
    [
        (("DRUG", 0, 4), ("DRUG", 6, 10), "@DRUG$, @DRUG$ x"),
        (("GENE", 0, 4), ("CHEMICAL", 4, 10), "@GENE$@CHEMICAL$ x"),  # neighbours do not overlap
        (("GENE", 0, 10), ("CHEMICAL", 6, 10), "@CHEM-GENE$ x"),
        (("CHEMICAL", 0, 10), ("GENE", 2, 5), "@CHEM-GENE$ x"),
        (("DRUG", 0, 6), ("DRUG", 4, 10), "@DRUG-DRUG$ x"),
        (("PROBLEM", 0, 4), ("PROBLEM", 11, 12), "@PROBLEM$, zinc @PROBLEM$"),
    ],
)
def test_dummies_stand_for_mentions(first, second, expected):
    first, second = (Mention("", *mention) for mention in (first, second))
    assert Relation("1", "Iron, zinc x", first, second, "").dummify().text == expected


def test_dummies_keep_a_row_in_a_row_and_a_text_that_has_them_as_it_is():
    ends = Mention("", "GENE", 0, 1), Mention("", "DISEASE", 2, 3)
    assert Relation("1", "a\nb\tc\rd", *ends, "").dummify().text == "@GENE$ @DISEASE$ c d"
    assert Relation("1", "a\nb", *ends, "", masked=True).dummify().text == "a\nb"
