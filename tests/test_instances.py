"""Instances: what is predicted for them, what a model reads, and the text as somebody wrote it."""

from conftest import each

from lib.benchmarks.instances import Labelled, Mention, Pair, Question, Relation, Sentence, Span

PAIR = Relation("1", "Iron binds HBA.", Mention("T1", "CHEMICAL", 0, 4), Mention("T2", "GENE", 11, 14), "false")
MASKED = Relation("1", "@GENE$ and\n@DISEASE$.", Mention("", "GENE", 0, 6), Mention("", "DISEASE", 11, 20), "1", True)


@each(
    ("instance", "inputs", "natural"),
    [
        (Sentence(["An", "ulcer"], ["O", "B"]), ["An ulcer"], ["An ulcer"]),
        (PAIR, ["@CHEMICAL$ binds @GENE$."], ["Iron binds HBA."]),
        (MASKED, ["@GENE$ and\n@DISEASE$."], ["and", "."]),
        (Pair("1", "One.", "Two.\n \nThree.", 2.0), ["One. Two.\n \nThree."], ["One.", "Two.", "Three."]),
        (Labelled("1", ("One.", "Two."), ()), ["One.", "Two."], ["One.", "Two."]),
        (
            Question("1", "Who?", ("I.", "He."), ("I",), (Span(0, 0, 1),)),
            ["Who? I.", "Who? He."],
            ["Who?", "I.", "He."],
        ),
        (Question("1", "Who?", (), ("I",), ()), [], ["Who?"]),
    ],
)
def test_inputs_and_natural_texts(instance, inputs, natural):
    assert (instance.inputs, instance.natural) == (inputs, natural)


@each("dummy", ["@CHEM-GENE$", "BC6ENTC", "bc6other"])
def test_dummies_are_not_natural_text(dummy):
    masked = Relation("1", f"{dummy}. It {dummy}, or", Mention("", "GENE", 0, 1), Mention("", "GENE", 2, 3), "1", True)
    assert masked.natural == [". It", ", or"]


def test_gold_is_hashable():
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
        (("CHEMICAL", 0, 10), ("GENE", 2, 5), "@CHEM-GENE$ x"),
        (("DRUG", 0, 6), ("DRUG", 4, 10), "@DRUG-DRUG$ x"),
    ],
)
def test_dummies_replace_mentions(first, second, expected):
    first, second = (Mention("", *mention) for mention in (first, second))
    assert Relation("1", "Iron, zinc x", first, second, "").dummify().text == expected


def test_line_ends_become_spaces_and_masked_texts_stay_as_they_are():
    ends = Mention("", "GENE", 0, 1), Mention("", "DISEASE", 2, 3)
    assert Relation("1", "a\nb\tc\rd", *ends, "").dummify().text == "@GENE$ @DISEASE$ c d"
    assert Relation("1", "a\nb", *ends, "", masked=True).dummify().text == "a\nb"
