"""Whole texts as sequences: how relations are written, what is cut off, the targets of each kind of task."""

import pytest
import torch
from conftest import each
from small_encoders import BODY, learn_tokenizer

from lib.benchmarks import registry
from lib.benchmarks.instances import Labelled, Mention, Pair, Relation
from lib.errors import StudyError
from lib.finetuning import texts
from lib.modeling import models
from lib.study import open_study

TEXT = "we gave iron and then zinc to all"
RELATION = Relation("1", TEXT, Mention("a", "DRUG", 8, 12), Mention("b", "DRUG", 22, 26), "DDI-int")


def make_task(tokenizer, dataset, train, length=64, protocol="gu", **changes):
    settings = open_study("paper").protocol(protocol, dataset).model_copy(update=changes)
    return texts.Texts(registry.lookup(dataset), settings, tokenizer, train, length)


def show(tokenizer, sequence, positions=None) -> str:
    ids = sequence.tokens if positions is None else [sequence.tokens[position] for position in positions]
    return tokenizer.decode(ids).replace(" ", "")


# Relations


@each(
    ("protocol", "text", "spans"),
    [
        ("gu", "[CLS]wegave@drug$andthen@drug$toall[SEP]", ["[CLS]"]),
        ("gu-dummies-mentions", "[CLS]wegave@drug$andthen@drug$toall[SEP]", ["@drug$", "@drug$"]),
        ("gu-original", "[CLS]wegaveironandthenzinctoall[SEP]", ["[CLS]"]),
        ("gu-original-mentions", "[CLS]wegaveironandthenzinctoall[SEP]", ["iron", "zinc"]),
        ("gu-markers", "[CLS]wegave[E1]iron[/E1]andthen[E2]zinc[/E2]toall[SEP]", ["[CLS]"]),
        ("gu-markers-mentions", "[CLS]wegave[E1]iron[/E1]andthen[E2]zinc[/E2]toall[SEP]",
         ["[E1]iron[/E1]", "[E2]zinc[/E2]"]),
        ("gu-markers-starts", "[CLS]wegave[E1]iron[/E1]andthen[E2]zinc[/E2]toall[SEP]", ["[E1]", "[E2]"]),
    ],
)  # fmt: skip
def test_the_seven_settings_of_table_14(protocol, text, spans):
    tokenizer = learn_tokenizer()  # the markers of an earlier value are no tokens of this one
    encoder = models.encoder_of(models.build_model("bert", BODY, len(tokenizer), 64, 0.0))
    task = make_task(tokenizer, "ddi", [RELATION], protocol=protocol)
    (sequence,) = task.encode([RELATION])
    assert show(tokenizer, sequence) == text
    assert [show(tokenizer, sequence, span) for span in sequence.positions] == spans
    markers = [token for token in sequence.tokens if token >= encoder.config.vocab_size]
    assert len(markers) == (4 if "[E1]" in text else 0)  # tokens of their own
    assert task.build(encoder, [RELATION])(task.collate([sequence])).shape == (1, 1)


def test_mentions_that_touch_or_overlap():
    touching = Relation("1", "ab", Mention("", "GENE", 0, 1), Mention("", "GENE", 1, 2), "")
    assert texts.add_markers(touching).text == "[E1] a [/E1][E2] b [/E2]"
    nested = Relation("1", "abc d", Mention("", "GENE", 0, 3), Mention("", "CHEMICAL", 1, 2), "")
    marked = texts.add_markers(nested)
    assert marked.text == "[E1] a[E2] b [/E2]c [/E1] d"
    assert [marked.text[slice(*mention)] for mention in marked[1:]] == ["[E1] a[E2] b [/E2]c [/E1]", "[E2] b [/E2]"]
    dummified = nested.dummify()  # a joint dummy stands for both
    assert dummified.text == "@CHEM-GENE$ d"
    assert [dummified.text[slice(*mention)] for mention in dummified[1:]] == ["@CHEM-GENE$"] * 2


def test_texts_with_dummies_cannot_have_markers(tokenizer):
    masked = Relation("1", "@GENE$ and @DISEASE$", Mention("", "GENE", 0, 6), Mention("", "DISEASE", 11, 20), "1", True)
    with pytest.raises(StudyError, match="comes with dummies in its texts, so 'markers' cannot be run"):
        make_task(tokenizer, "gad", [masked], protocol="gu-markers")


@each("before", [0, 60])
@each("between", [0, 80])
@each("after", [0, 60])
@each("protocol", ["gu-dummies-mentions", "gu-original-mentions", "gu-markers-starts"])
def test_both_mentions_survive_the_length_limit(tokenizer, before, between, after, protocol):
    text = "a " * before + "iron " + "b " * between + "zinc" + " c" * after
    first, second = text.index("iron"), text.index("zinc")
    relation = Relation("1", text, Mention("", "DRUG", first, first + 4), Mention("", "DRUG", second, second + 4), "x")
    task = make_task(tokenizer, "ddi", [relation], length=32, protocol=protocol)
    (sequence,) = task.encode([relation])
    is_long = before + between + after + 2 > 40
    assert len(sequence.tokens) <= 32 and (task.cut or not is_long)
    left, right = (show(tokenizer, sequence, span) for span in sequence.positions)
    assert left and right and (left, right) in (("@drug$", "@drug$"), ("iron", "zinc"), ("[E1]", "[E2]"))


# Pairs, documents, candidates


def test_pairs_lose_the_end_of_the_longer_text(tokenizer):
    pairs = [Pair("1", "a b", "c " * 40, "yes"), Pair("2", "a " * 40, "c", "no"), Pair("3", "a", "b", "yes")]
    task = make_task(tokenizer, "pubmedqa", pairs, length=16)
    sequences = task.encode(pairs)
    assert task.cut == 2 and [len(sequence.tokens) for sequence in sequences] == [16, 16, 5]
    assert show(tokenizer, sequences[0]) == "[CLS]ab[SEP]" + "c" * 11 + "[SEP]"
    assert show(tokenizer, sequences[1]) == "[CLS]" + "a" * 12 + "[SEP]c[SEP]"
    assert sequences[0].second == 4


def test_each_kind_of_target(tokenizer):
    number = make_task(tokenizer, "biosses", [Pair("1", "a", "b", 2.5)])
    sequences = number.encode([Pair("1", "a", "b", 2.5)])
    assert (number.target, sequences[0].target) == ("number", 2.5)
    assert number.decode([], sequences, number.read(torch.tensor([1.5]), sequences)) == [1.5]

    documents = [Labelled("1", ("a b", "c"), ("x", "y")), Labelled("2", ("d",), ())]
    labels = make_task(tokenizer, "hoc", documents)
    sequences = labels.encode(documents)
    assert (labels.target, [sequence.target for sequence in sequences]) == ("labels", [[1.0, 1.0], [0.0, 0.0]])
    assert labels.decode(documents, sequences, [[0.5, 0.2], [0.1, 0.1]]) == [("x",), ()]
    assert show(tokenizer, sequences[0]) == "[CLS]abc[SEP]"

    candidates = [Pair("1", "a", "b", "0", "q"), Pair("2", "a", "c", "1", "q")]
    ranking = make_task(tokenizer, "bioasq-reranker", candidates, protocol="ozyurt-weighted")
    sequences = ranking.encode(candidates)
    assert ranking.decode(candidates, sequences, [[0.7, 0.3], [0.2, 0.8]]) == [0.3, 0.8]
    none_right = make_task(tokenizer, "bioasq-reranker", candidates[:1])
    assert none_right.decode(candidates, none_right.encode(candidates), [[1.0], [1.0]]) == [0.0, 0.0]
    encoder = models.encoder_of(models.build_model("bert", BODY, len(tokenizer), 64, 0.0))
    assert ranking.build(encoder, [candidates[0]] * 3 + [candidates[1]]).weights.tolist() == pytest.approx([2 / 3, 2])


@each("changes", [{"encoding": "mentions"}, {"weighted": True}, {"head": "CRF"}])
def test_a_setting_for_other_kinds_of_text_changes_nothing(tokenizer, changes):
    document = Labelled("1", ("a b",), ())  # without a label, as some of several labels are
    heads, batches = [], []
    for settings in ({}, changes):
        task = make_task(tokenizer, "hoc", [document, Labelled("2", ("c",), ("x",))], **settings)
        encoder = models.encoder_of(models.build_model("bert", BODY, len(tokenizer), 64, 0.0))
        heads.append(task.build(encoder, [document]).eval())
        batches.append(task.collate(task.encode([document])))
    plain, changed = heads
    changed.load_state_dict(plain.state_dict())
    assert torch.equal(changed(batches[1]), plain(batches[0]))
    assert torch.equal(changed.loss(batches[1]), plain.loss(batches[0]))


def test_a_class_that_training_lacks_counts_as_wrong(tokenizer):
    task = make_task(tokenizer, "pubmedqa", [Pair("1", "a", "b", "yes"), Pair("2", "a", "b", "no")])
    maybe = [Pair("3", "a", "b", "maybe")]
    sequences = task.encode(maybe)
    predicted = task.decode(maybe, sequences, [[0.9, 0.1]])
    assert registry.lookup("pubmedqa").score(maybe, predicted) == {"accuracy": 0.0}


def test_japanese_is_cut_into_words_with_the_question_first(tokenizer):
    question = Labelled("1", ("患者は？", "薬を飲んだ。"), ("はい",))
    text, other, _ = make_task(tokenizer, "jmed-crade", [question], protocol="wada").write(question)
    assert text == "患者 は ?" and other.split() == ["薬", "を", "飲ん", "だ", "。"]
