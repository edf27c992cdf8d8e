"""Vocabularies: deterministic training of every kind, amplification, pieces, casing."""

import io
import json

import pytest
import sentencepiece
from conftest import change_settings, each, outputs_in, run_python
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertTokenizer, PreTrainedTokenizerFast

from lib.errors import StudyError
from lib.study import dataset_texts, documents, open_study, params
from lib.study.vocabularies import open_tokenizer
from lib.vocabularies import learning
from lib.vocabularies.special_tokens import SPECIAL, wrap
from lib.vocabularies.tokenization import check_casing, encode_texts, load_vocabulary, load_wordpiece
from lib.vocabularies.words import continuation_flags, count_tokens, tokens_of_words

SMOKE = open_study("smoke")
TEXT = ["Aspirin and Naloxone reduce the risk of Thrombosis .", "The risk of aspirin is low ."] * 20


def number(pieces) -> dict[str, int]:
    return {piece: i for i, piece in enumerate(pieces)}


@each(
    ("make", "continues"),
    [
        (  # as ALBERT decides
            lambda pieces: wrap(Tokenizer(models.Unigram([(piece, 0.0) for piece in pieces], unk_id=1))),
            {"\u2581pain": False, "er": True, "2": False, "µg": False, "-induced": True, "al.": True, "%)": True,
             "-": False, "'s": False},
        ),
        (
            lambda pieces: wrap(Tokenizer(models.BPE(number(pieces), []))),
            {"\u0120pain": False, "er": True, "2": True, "-": False, "\u0120": False},
        ),
        (  # BPE's mark is a letter in WordPiece
            lambda pieces: load_wordpiece(number(pieces), cased=True),
            {"\u0120": False, "pain": False, "##er": True, "2": False},
        ),
    ],
)  # fmt: skip
def test_tokens_that_continue_a_word(make, continues):
    tokenizer = make([*SPECIAL, *continues])
    assert continuation_flags(tokenizer) == [False] * len(SPECIAL) + list(continues.values())


@pytest.mark.parametrize("cased", [True, False])
def test_the_wrong_casing_is_refused(cased):
    right = learning.train_vocabulary(lambda: TEXT, "wordpiece", 120, cased)
    assert right.convert_ids_to_tokens(range(5)) == SPECIAL
    wrong = load_wordpiece(right.get_vocab(), not cased)
    with pytest.raises(StudyError, match="set do_lower_case to (false|true)"):
        check_casing(wrong, "wrong")


def test_one_capital_does_not_make_a_vocabulary_cased():
    tokens = [*SPECIAL, *"abN", "NCBI", *(f"word{i}" for i in range(600))]
    with pytest.raises(StudyError, match="^mine: only 1 of 601 tokens of the vocabulary hold capitals, but its"):
        check_casing(load_wordpiece(number(tokens), cased=True), "mine")


def test_casing_survives_saving(tmp_path):
    trained = learning.train_vocabulary(lambda: TEXT, "wordpiece", 120, cased=True)
    trained.save_pretrained(tmp_path)
    for loaded in (load_vocabulary(tmp_path), BertTokenizer.from_pretrained(tmp_path)):
        assert loaded.tokenize("Aspirin") == trained.tokenize("Aspirin") != loaded.tokenize("aspirin")
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["do_lower_case"] is False
    with pytest.raises(StudyError, match="vocab.txt: a list of tokens; say whether it is cased"):
        load_vocabulary(tmp_path / "vocab.txt")
    with pytest.raises(StudyError, match="no token of the vocabulary holds a capital"):
        learning.train_vocabulary(lambda: [text.lower() for text in TEXT], "wordpiece", 120, cased=True)


TRAIN = """
import hashlib, sys
from lib.vocabularies.learning import train_vocabulary
text = open(sys.argv[1]).read().splitlines()
for algorithm in ("wordpiece", "bpe", "unigram"):
    for cased in (True, False):
        tokenizer = train_vocabulary(lambda: text, algorithm, 300, cased)
        print(hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def some_text(tmp_path_factory):
    """A file of made-up documents, one a line."""
    folder = tmp_path_factory.mktemp("text")
    with outputs_in(folder / "outputs"):
        params.load.cache_clear()
        build("wiki-books")
        found = [document.text.replace("\n", " ") for document in SMOKE.corpus("wiki-books").documents()]
    path = folder / "text.txt"
    path.write_text("\n".join(found))
    return path


def build(corpus: str) -> None:
    dataset_texts.test_texts.cache_clear()  # the folder of made-up data is this test's own
    dataset_texts.write_index(SMOKE)
    for source, file in SMOKE.corpus(corpus).files:
        documents.read_raw_file(SMOKE, source, file)
    SMOKE.corpus(corpus).build()


def test_training_gives_the_same_vocabulary_on_any_number_of_cores(some_text):
    one, two = (run_python(TRAIN, str(some_text), RAYON_NUM_THREADS=cores) for cores in "12")
    assert one == two
    assert len(set(one.split())) == 6  # algorithm and casing matter


@pytest.mark.parametrize(("kind", "cased"), [("bpe", True), ("unigram", False)])
def test_bpe_and_unigram_decode_to_the_original_text(some_text, kind, cased):
    lines = some_text.read_text().splitlines()
    tokenizer = learning.train_vocabulary(lambda: lines, kind, 300, cased)
    assert tokenizer.convert_ids_to_tokens(range(5)) == SPECIAL
    # SentencePiece leaves the rarest letters to the unknown piece.
    line = next(line for line in lines if tokenizer.unk_token_id not in tokenizer(line)["input_ids"])
    text = line if cased else line.lower()
    assert tokenizer.decode(tokenizer(line, add_special_tokens=False)["input_ids"]).strip() == text
    pair = tokenizer("The town", "The river")
    assert [pair["input_ids"].count(tokenizer.convert_tokens_to_ids(t)) for t in ("[CLS]", "[SEP]")] == [1, 2]
    assert set(pair["token_type_ids"]) == {0, 1}


def test_unigram_pieces_are_those_of_sentencepiece(some_text):
    lines = some_text.read_text().splitlines()
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type="unigram", vocab_size=300, num_threads=1,
        hard_vocab_limit=False, normalization_rule_name="identity", max_sentence_length=2**20, minloglevel=2,
        pad_id=0, unk_id=1, bos_id=2, eos_id=3,
        pad_piece="[PAD]", unk_piece="[UNK]", bos_piece="[CLS]", eos_piece="[SEP]", user_defined_symbols=["[MASK]"],
    )  # fmt: skip
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ours = learning.train_unigram(lambda: lines, 300, cased=True)
    for line in lines[:200]:
        assert ours.encode(line).tokens == theirs.encode(line, out_type=str)
    one_line, two_lines = (ours.encode(mark.join(lines[:2])) for mark in (" ", "\n"))
    assert two_lines.tokens == one_line.tokens  # a line end is no unknown token
    assert two_lines.offsets == one_line.offsets


def test_the_core_is_repeated_to_the_size_of_the_satellite():
    assert learning.repeats({"core": 10, "satellite": 49}, ["core"]) == {"core": 5, "satellite": 1}
    assert learning.repeats({"core": 90, "satellite": 20}, ["core"]) == {"core": 1, "satellite": 1}
    assert learning.repeats({"a": 3, "b": 4}, []) == {"a": 1, "b": 1}


def test_an_amplified_vocabulary_keeps_more_words_of_its_core(smoke_data, monkeypatch):
    change_settings(monkeypatch, "scales", "smoke", vocabulary_size=260)
    for corpus in ("pubmed-small", "wiki-books"):
        build(corpus)
    open_tokenizer.cache_clear()
    words = {word for document in SMOKE.corpus("pubmed-small").documents() for word in document.text.split()}
    whole = {}
    for key in ("small-general-amplified", "small-general-uncased"):
        vocabulary = SMOKE.vocabulary(key)
        repeats = vocabulary.train()["repeats"]
        assert (repeats["pubmed-small"] > 5) == (key == "small-general-amplified")
        whole[key] = sum(len(vocabulary.tokenizer().tokenize(word)) == 1 for word in words)
    assert whole["small-general-amplified"] > whole["small-general-uncased"]
    open_tokenizer.cache_clear()


def test_a_published_vocabulary_needs_its_file_and_is_never_trained(monkeypatch, tmp_path):
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    open_tokenizer.cache_clear()
    with pytest.raises(StudyError, match="'bert-uncased': not at hand: run ./run_all.sh data vocab"):
        open_study("laptop").vocabulary("bert-uncased").tokenizer()
    with pytest.raises(StudyError, match="published: there is nothing to train"):
        open_study("laptop").vocabulary("bert-uncased").train()
    assert "made-up" in SMOKE.vocabulary("bert-uncased").why_not


def test_published_vocabularies_load_with_their_casing(real_data):
    open_tokenizer.cache_clear()
    for key in params.keys("vocabularies"):
        vocabulary = params.load("vocabularies", key)
        if vocabulary.file:
            assert len(open_study("laptop").vocabulary(key).tokenizer()) == vocabulary.size
    open_tokenizer.cache_clear()


SIGNS = "[ ] < > p a d m s k P A D M S K ##a ##d ##s ##k ##A ##D ##S ##K pad mask"


def make_tokenizer(kind: str):
    """Return a tokenizer of single letters, cased except for `uncased`."""
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
        return load_wordpiece(number([*SPECIAL, *SIGNS.split()]), kind == "wordpiece")
    return learning.train_vocabulary(lambda: [f"{SIGNS} PAD MASK"] * 9, kind, 400, cased=True)


@pytest.mark.parametrize("kind", ["wordpiece", "uncased", "bpe", "sentencepiece names"])
def test_special_tokens_in_a_text_are_read_as_text(kind):
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


def test_markers_of_mentions_stay_tokens():
    tokenizer = make_tokenizer("wordpiece")
    tokenizer.add_tokens(["[E1]", "[/E1]"], special_tokens=True)
    (ids,) = encode_texts(tokenizer, ["[E1] a [/E1] [PAD]"])["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["[E1]", "a", "[/E1]", "[", "P", "##A", "##D", "]"]
