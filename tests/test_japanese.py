"""Japanese vocabularies: WordPiece on MeCab's words as they are; elsewhere they load as BertJapaneseTokenizer."""

import pytest
import torch
from transformers import AutoTokenizer, BertJapaneseTokenizer

from lib.benchmarks import registry
from lib.corpora.cleaning import segment_japanese
from lib.errors import StudyError
from lib.finetuning.protocol import FinetuningSettings
from lib.finetuning.splits import Splits
from lib.modeling import loading, models
from lib.modeling.shape import Body
from lib.study import open_study, params
from lib.vocabularies import learning, words
from lib.vocabularies.japanese import JapaneseTokenizer
from lib.vocabularies.tokenization import encode_texts, fingerprint_tokenizer, load_vocabulary

SENTENCES = [
    "慢性膵炎では，糖尿病性ケトアシドーシス(DKA)の合併は比較的稀である．",
    "プレドニゾロン１０㎎／日を５日間投与し、発熱は改善した。",
    "ﾍﾟﾆｼﾘﾝ系抗菌薬にアレルギーがあり、Ca²⁺は9.2 mg/dL、CRPは0.3以下だった。",
    "患者は [MASK] と書いた。[UNK]も、[PAD]も語である。　\u200b\u00a0終わり",
    "ガドリニウム造影剤でβ2-ミクログロブリンが上昇、がん・ぜんそくの既往なし。",
]
TEXT = [segment_japanese(sentence) for sentence in SENTENCES] * 20


@pytest.fixture(scope="module")
def tokenizer():
    return learning.train_vocabulary(lambda: TEXT, "wordpiece", 1000, cased=False, language="ja")


def test_words_keep_their_voicing_marks(tokenizer):
    vocabulary = tokenizer.get_vocab()
    assert {"糖尿", "投与", "アレルギー", "が", "で", "ぜんそく", "mg"} <= {*vocabulary}
    (ids,) = encode_texts(tokenizer, [segment_japanese("アレルギーが、糖尿病で。ＭＧ")])["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["アレルギー", "が", "、", "糖尿", "病", "で", "。", "mg"]
    retrained = learning.train_vocabulary(lambda: TEXT, "wordpiece", 1000, cased=False, language="ja")
    assert fingerprint_tokenizer(retrained) == fingerprint_tokenizer(tokenizer)


def test_a_saved_folder_opens_as_bert_japanese_with_the_same_ids(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    theirs, reloaded = AutoTokenizer.from_pretrained(tmp_path), load_vocabulary(tmp_path)
    assert type(theirs) is BertJapaneseTokenizer and type(reloaded) is JapaneseTokenizer
    assert fingerprint_tokenizer(reloaded) == fingerprint_tokenizer(tokenizer)
    plain = [text for text in SENTENCES if "[" not in text]  # the study reads written special tokens as text
    plain.append("鬱病の鼻閉にＸ線を１２回。")  # with unknown tokens
    encoded = encode_texts(reloaded, [segment_japanese(text) for text in plain])["input_ids"]
    assert encoded == [theirs(text, add_special_tokens=False)["input_ids"] for text in plain]
    assert reloaded.unk_token_id in encoded[-1]
    (ids,) = encode_texts(reloaded, [segment_japanese(SENTENCES[3])])["input_ids"]
    assert not {*ids} & {reloaded.mask_token_id, reloaded.pad_token_id}
    assert reloaded("薬", "病")["input_ids"] == theirs("薬", "病")["input_ids"]


def test_a_model_with_japanese_words_reads_japanese_only(tokenizer, tmp_path):
    torch.manual_seed(0)
    body = Body(layers=1, hidden=32, heads=2, intermediate=64, embedding=32)
    models.build_model("bert", body, len(tokenizer), 32, 0.0).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    encoder = loading.load_encoder(tmp_path)
    assert fingerprint_tokenizer(encoder.tokenizer) == fingerprint_tokenizer(tokenizer)
    assert type(AutoTokenizer.from_pretrained(tmp_path)) is BertJapaneseTokenizer
    settings = FinetuningSettings(epochs=[1], batch_size=[8], learning_rate=[1e-3], warmup=0.1, weight_decay=0.0,
                                  dropout=0.0, max_length=32)  # fmt: skip
    splits = Splits(encoder, registry.lookup("ncbi-disease"), settings)
    with pytest.raises(StudyError, match="its vocabulary is of Japanese words; .* is not Japanese"):
        splits.task(1)


def test_other_word_segmentation_is_refused(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    options = {"mecab_dic": "ipadic", "normalize_text": False}
    other = BertJapaneseTokenizer(str(tmp_path / "vocab.txt"), word_tokenizer_type="mecab", mecab_kwargs=options)
    other.save_pretrained(tmp_path)
    with pytest.raises(StudyError, match="its words are made otherwise \\(normalize_text: False\\)"):
        load_vocabulary(tmp_path)


def test_japanese_needs_wordpiece():
    with pytest.raises(StudyError, match="no unigram vocabulary of MeCab's words"):
        learning.train_vocabulary(lambda: TEXT, "unigram", 300, cased=False, language="ja")


def test_too_many_unknown_tokens_are_refused_with_the_missing_letters(tokenizer):
    text = ["糖尿 病 鬱病", "Mg が で", ""]
    share, letters = words.count_unknown(tokenizer, text)
    assert share == 1 / 6 and letters == {"鬱": 1}
    assert words.count_unknown(tokenizer, []) == (0.0, {}) and words.check_unknown(tokenizer, text[1:], "v") == 0.0
    with pytest.raises(StudyError, match=r"^v: 16.7% of the tokens of its own text are unknown, .* lacks: 鬱 \(1\);"):
        words.check_unknown(tokenizer, text, "v")


def test_only_japanese_vocabularies_record_their_language():
    for key in params.keys("vocabularies"):
        vocabulary = open_study("laptop").vocabulary(key)
        japanese = vocabulary.settings.language == "ja"
        assert ("language" in vocabulary.recipe) == (vocabulary.saved.name == "vocab.txt") == japanese
