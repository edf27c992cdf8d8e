"""Vocabularies: deterministic training of every kind, amplification, pieces, casing."""

import json
import os
import subprocess
import sys

import pytest
from conftest import outputs_in
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertTokenizer, PreTrainedTokenizerFast

from lib.errors import StudyError
from lib.study import dataset_texts, documents, open_study, params, paths
from lib.study.vocabularies import open_tokenizer
from lib.vocabularies import learning
from lib.vocabularies.learning import TRAINERS, repeats, train_unigram
from lib.vocabularies.tokenization import SPECIAL, check_casing, encode_texts, load_vocabulary, load_wordpiece, wrap
from lib.vocabularies.words import continuation_flags, count_tokens, tokens_of_words

TEXT = ["Aspirin and Naloxone reduce the risk of Thrombosis .", "The risk of aspirin is low ."] * 20


@pytest.fixture
def tokenizer():
    return learning.train_vocabulary(lambda: TEXT, "wordpiece", 120, cased=True)


def test_the_special_pieces_come_first(tokenizer):
    assert tokenizer.convert_ids_to_tokens(range(5)) == SPECIAL


def test_a_word_always_has_a_token(tokenizer):
    tokens = tokens_of_words(tokenizer, ["Aspirin", "\u200b", "Ω", "Aspirin"])
    assert tokens["\u200b"] == tokens["Ω"] == [tokenizer.unk_token_id]
    assert tokenizer.convert_ids_to_tokens(tokens["Aspirin"]) == tokenizer.tokenize("Aspirin")


def test_continuation_flags_follow_the_ids(tokenizer):
    flags = continuation_flags(tokenizer)
    assert all(tokenizer.convert_ids_to_tokens(i).startswith("##") == flag for i, flag in enumerate(flags))


def test_words_of_unigram_vocabularies_go_on_where_albert_says():
    goes_on = {"\u2581pain": False, "er": True, "2": False, "µg": False, "-induced": True, "al.": True, "%)": True,
               "-": False, "'s": False}  # fmt: skip
    tokenizer = wrap(Tokenizer(models.Unigram([(piece, 0.0) for piece in (*SPECIAL, *goes_on)], unk_id=1)))
    assert dict(zip(goes_on, continuation_flags(tokenizer)[len(SPECIAL) :], strict=True)) == goes_on
    assert not any(continuation_flags(tokenizer)[: len(SPECIAL)])


def test_words_of_bpe_go_on_with_letters_and_digits():
    goes_on = {"\u0120pain": False, "er": True, "2": True, "-": False, "\u0120": False}
    tokenizer = wrap(Tokenizer(models.BPE({p: i for i, p in enumerate((*SPECIAL, *goes_on))}, [])))
    assert dict(zip(goes_on, continuation_flags(tokenizer)[len(SPECIAL) :], strict=True)) == goes_on


def test_the_mark_of_another_vocabulary_is_a_letter_in_wordpiece():
    tokenizer = load_wordpiece({p: i for i, p in enumerate((*SPECIAL, "\u0120", "pain", "##er", "2"))}, cased=True)
    assert continuation_flags(tokenizer)[len(SPECIAL) :] == [False, False, True, False]


@pytest.mark.parametrize("cased", [True, False])
def test_casing_that_does_not_fit_is_refused(cased):
    right = learning.train_vocabulary(lambda: TEXT, "wordpiece", 120, cased)
    wrong = load_wordpiece(right.get_vocab(), not cased)
    with pytest.raises(StudyError, match="set do_lower_case to (false|true)"):
        check_casing(wrong, "wrong")


def test_one_capital_does_not_make_a_vocabulary_cased():
    tokens = [*SPECIAL, *"abN", "NCBI", *(f"word{number}" for number in range(600))]
    tokenizer = load_wordpiece({token: number for number, token in enumerate(tokens)}, cased=True)
    with pytest.raises(StudyError, match="^mine: only 1 of 601 tokens of the vocabulary hold capitals, but its"):
        check_casing(tokenizer, "mine")


def test_casing_survives_saving(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path / "saved")
    loaded = BertTokenizer.from_pretrained(tmp_path / "saved")
    assert loaded.tokenize("Aspirin") == tokenizer.tokenize("Aspirin") != loaded.tokenize("aspirin")
    assert json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())["do_lower_case"] is False


TRAIN = """
import hashlib, sys
from lib.vocabularies.learning import train_vocabulary
text = open(sys.argv[1]).read().splitlines()
for algorithm in ("wordpiece", "bpe", "unigram"):
    for cased in (True, False):
        tokenizer = train_vocabulary(lambda: text, algorithm, 300, cased)
        print(hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest())
"""


def test_a_readers_own_text_is_enough(tmp_path):
    trained = learning.train_vocabulary(lambda: TEXT, "wordpiece", 120, cased=False)
    trained.save_pretrained(tmp_path)
    assert load_vocabulary(tmp_path).tokenize("aspirin") == trained.tokenize("Aspirin")
    with pytest.raises(StudyError, match="vocab.txt: a list of tokens; say whether it is cased"):
        load_vocabulary(tmp_path / "vocab.txt")
    with pytest.raises(StudyError, match="no token of the vocabulary holds a capital"):
        learning.train_vocabulary(lambda: [text.lower() for text in TEXT], "wordpiece", 120, cased=True)


@pytest.fixture(scope="module")
def some_text(tmp_path_factory):
    """A file of made-up documents, one a line."""
    folder = tmp_path_factory.mktemp("text")
    with outputs_in(folder / "outputs"):
        params.load.cache_clear()
        build("wiki-books")
        found = [document.text.replace("\n", " ") for document in open_study("smoke").corpus("wiki-books").documents()]
    path = folder / "text.txt"
    path.write_text("\n".join(found))
    return path


def build(corpus: str) -> None:
    dataset_texts.test_texts.cache_clear()  # the folder of made-up data is this test's own
    dataset_texts.write_index(open_study("smoke"))
    for source, file in open_study("smoke").corpus(corpus).files:
        if not paths.documents("smoke", source, file).exists():
            documents.read_raw_file(open_study("smoke"), source, file)
    open_study("smoke").corpus(corpus).build()


def test_every_kind_is_the_same_in_another_process_and_on_another_number_of_cores(some_text):
    found = set()
    for cores in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", TRAIN, str(some_text)],
            env=os.environ | {"RAYON_NUM_THREADS": cores},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1
    assert len(set(found.pop().split())) == 6  # and they differ from each other


@pytest.mark.parametrize("kind", list(TRAINERS))
@pytest.mark.parametrize("cased", [True, False])
def test_other_kinds_keep_special_pieces_casing_and_text(some_text, kind, cased):
    lines = some_text.read_text().splitlines()
    tokenizer = wrap(TRAINERS[kind](lambda: lines, 300, cased))
    check_casing(tokenizer, kind)
    assert tokenizer.convert_ids_to_tokens(range(5)) == SPECIAL
    # SentencePiece leaves the rarest letters to the unknown piece.
    line = next(line for line in lines if tokenizer.unk_token_id not in tokenizer(line)["input_ids"])
    text = line if cased else line.lower()
    assert tokenizer.decode(tokenizer(line, add_special_tokens=False)["input_ids"]).strip() == text
    pair = tokenizer("The town", "The river")
    assert [pair["input_ids"].count(tokenizer.convert_tokens_to_ids(t)) for t in ("[CLS]", "[SEP]")] == [1, 2]
    assert set(pair["token_type_ids"]) == {0, 1}


def test_unigram_pieces_are_those_of_sentencepiece(some_text):
    import io

    import sentencepiece

    lines = some_text.read_text().splitlines()
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type="unigram", vocab_size=300, num_threads=1,
        hard_vocab_limit=False, normalization_rule_name="identity", max_sentence_length=2**20, minloglevel=2,
        pad_id=0, unk_id=1, bos_id=2, eos_id=3,
        pad_piece="[PAD]", unk_piece="[UNK]", bos_piece="[CLS]", eos_piece="[SEP]", user_defined_symbols=["[MASK]"],
    )  # fmt: skip
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ours = train_unigram(lambda: lines, 300, cased=True)
    for line in lines[:200]:
        assert ours.encode(line).tokens == theirs.encode(line, out_type=str)


def test_the_core_is_repeated_to_the_size_of_the_satellite():
    assert repeats({"core": 10, "satellite": 49}, ["core"]) == {"core": 5, "satellite": 1}
    assert repeats({"core": 90, "satellite": 20}, ["core"]) == {"core": 1, "satellite": 1}
    assert repeats({"a": 3, "b": 4}, []) == {"a": 1, "b": 1}


def test_an_amplified_vocabulary_keeps_more_words_of_its_core(smoke_data, monkeypatch):
    small, load = params.load("scales", "smoke").model_copy(update={"vocabulary_size": 260}), params.load
    monkeypatch.setattr(params, "load", lambda kind, key: small if kind == "scales" else load(kind, key))
    for corpus in ("pubmed-small", "wiki-books"):
        build(corpus)
    open_tokenizer.cache_clear()
    assert open_study("smoke").vocabulary("small-general-amplified").train()["repeats"]["pubmed-small"] > 5
    open_study("smoke").vocabulary("small-general-uncased").train()
    corpus = open_study("smoke").corpus("pubmed-small")
    words = {word for document in corpus.documents() for word in document.text.split()}
    whole = [
        sum(len(open_study("smoke").vocabulary(key).tokenizer().tokenize(word)) == 1 for word in words)
        for key in ("small-general-amplified", "small-general-uncased")
    ]
    assert whole[0] > whole[1]
    open_tokenizer.cache_clear()


def test_a_published_vocabulary_needs_its_file_and_is_never_trained(monkeypatch, tmp_path):
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    open_tokenizer.cache_clear()
    with pytest.raises(StudyError, match="'bert-uncased': not at hand: run ./run_all.sh data vocab"):
        open_study("laptop").vocabulary("bert-uncased").tokenizer()
    with pytest.raises(StudyError, match="published: there is nothing to train"):
        open_study("laptop").vocabulary("bert-uncased").train()
    assert "made-up" in open_study("smoke").vocabulary("bert-uncased").why_not


def test_published_vocabularies_load_with_their_casing(real_data):
    open_tokenizer.cache_clear()
    for key in params.keys("vocabularies"):
        vocabulary = params.load("vocabularies", key)
        if vocabulary.file:
            assert len(open_study("laptop").vocabulary(key).tokenizer()) == vocabulary.size
    open_tokenizer.cache_clear()


def test_a_cased_vocabulary_in_lower_case_is_refused(real_data, monkeypatch):
    cased = params.load("vocabularies", "bert-cased").model_copy(update={"cased": False})
    load = params.load
    monkeypatch.setattr(params, "load", lambda kind, key: cased if kind == "vocabularies" else load(kind, key))
    with pytest.raises(StudyError, match="bert-base-cased.txt: the vocabulary is cased .* set do_lower_case to false"):
        open_tokenizer.__wrapped__(open_study("laptop").vocabulary("bert-cased"))


SIGNS = "[ ] < > p a d m s k P A D M S K ##a ##d ##s ##k ##A ##D ##S ##K pad mask"


def make_tokenizer(kind: str):
    """Of each kind of vocabulary, with single letters, all of them cased but `uncased`."""
    if kind == "sentencepiece names":  # a unigram vocabulary with <pad> and <mask>, as T5 and XLM-R have
        pieces = [(name, 0.0) for name in ("<pad>", "<unk>", "<s>", "</s>", "<mask>")]
        pieces += [(f"{space}{sign}", -2.0) for sign in SIGNS.split() for space in ("", "\u2581") if "#" not in sign]
        model = Tokenizer(models.Unigram(pieces, unk_id=1))
        model.pre_tokenizer = pre_tokenizers.Metaspace()
        names = ("pad", "unk", "cls", "sep", "mask")
        return PreTrainedTokenizerFast(
            tokenizer_object=model, **{f"{name}_token": piece for name, (piece, _) in zip(names, pieces, strict=False)}
        )
    if kind in ("wordpiece", "uncased"):
        return load_wordpiece({token: id for id, token in enumerate([*SPECIAL, *SIGNS.split()])}, kind == "wordpiece")
    return learning.train_vocabulary(lambda: [f"{SIGNS} PAD MASK"] * 9, kind, 400, cased=True)


@pytest.mark.parametrize("kind", ["wordpiece", "uncased", "bpe", "unigram", "sentencepiece names"])
def test_what_is_written_as_a_special_token_is_text(kind):
    tokenizer = make_tokenizer(kind)
    names, special = tokenizer.all_special_tokens, {*tokenizer.all_special_ids} - {tokenizer.unk_token_id}
    texts = [f"a {name} d{name}" for name in names] + ["a pad", "", "ス a"]
    encoded = encode_texts(tokenizer, texts, offsets=True)
    for text, ids, offsets in zip(texts, encoded["input_ids"], encoded["offset_mapping"], strict=True):
        assert special.isdisjoint(ids) and len(ids) == len(offsets)
        assert not {text[start:end] for start, end in offsets} & {*names}
    for text, ids in zip(texts[-3:], encoded["input_ids"][-3:], strict=True):  # others are as they were
        assert ids == tokenizer(text, add_special_tokens=False)["input_ids"]
    word = f"[{names[0]}]"
    assert tokens_of_words(tokenizer, [word])[word] == encode_texts(tokenizer, [word])["input_ids"][0]
    assert count_tokens(tokenizer, texts) == [len(ids) for ids in encoded["input_ids"]]


def test_markers_of_mentions_stay_tokens_beside_what_is_written_as_a_special_one():
    tokenizer = make_tokenizer("wordpiece")
    tokenizer.add_tokens(["[E1]", "[/E1]"], special_tokens=True)
    (ids,) = encode_texts(tokenizer, ["[E1] a [/E1] [PAD]"])["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["[E1]", "a", "[/E1]", "[", "P", "##A", "##D", "]"]
