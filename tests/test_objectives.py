"""Masking: how much, of what, and that batch i is always the same batch."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertTokenizer

from lib import objectives, vocabularies

LENGTH = 64


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    names = [f"drug{i:03d}ol disease{i:03d}itis" for i in range(300)]
    vocabularies.train_wordpiece(lambda: names * 3, 300, cased=True).save_model(str(folder))
    return BertTokenizer(vocab=str(folder / "vocab.txt"), do_lower_case=False)


@pytest.fixture(scope="module")
def tokens(tokenizer):
    rng = np.random.default_rng(0)
    text = " ".join(f"drug{n:03d}ol" for n in rng.integers(0, 300, 5000))
    return np.array(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"], dtype=np.uint16)


def make(tokens, tokenizer, whole_words=True, steps=40, seed=1):
    return objectives.MaskedBlocks(
        tokens,
        tokenizer,
        length=LENGTH,
        batch_size=8,
        steps=steps,
        masked_share=0.15,
        whole_words=whole_words,
        seed=seed,
    )


@pytest.mark.parametrize("whole_words", [True, False])
def test_shares(tokens, tokenizer, whole_words):
    batches = [make(tokens, tokenizer, whole_words)[i] for i in range(40)]
    ids = torch.cat([b["input_ids"] for b in batches])
    labels = torch.cat([b["labels"] for b in batches])
    asked = labels != objectives.UNMASKED
    # A word that would exceed the share is passed over, and here most words are of four pieces.
    assert asked.sum().item() / (ids.numel() - 2 * len(ids)) == pytest.approx(0.15, abs=0.025 if whole_words else 0.01)
    hidden = (ids[asked] == tokenizer.mask_token_id).float().mean().item()
    kept = (ids[asked] == labels[asked]).float().mean().item()
    assert hidden == pytest.approx(0.8, abs=0.03)
    assert kept == pytest.approx(0.1, abs=0.03)
    assert torch.equal(ids[~asked], torch.where(asked, 0, ids)[~asked])


def test_whole_words_are_never_split(tokens, tokenizer):
    blocks = make(tokens, tokenizer)
    split_words = 0
    for i in range(10):
        for inputs, labels in zip(*[blocks[i][n].numpy() for n in ("input_ids", "labels")], strict=True):
            asked = labels != objectives.UNMASKED
            original = np.where(asked, labels, inputs)
            for position in np.flatnonzero(blocks.continues[original]):
                if not blocks.maskable[original[position - 1]]:
                    continue  # the first piece of the word is in the block before
                assert asked[position] == asked[position - 1]
                split_words += 1
    assert split_words > 100  # the check above had something to check


def test_a_batch_depends_on_seed_and_step_alone(tokens, tokenizer):
    one, other = make(tokens, tokenizer), make(tokens, tokenizer)
    [other[i] for i in (5, 0, 30)]
    for name in ("input_ids", "labels"):
        assert torch.equal(one[12][name], other[12][name])
    assert not torch.equal(one[12]["input_ids"], make(tokens, tokenizer, seed=2)[12]["input_ids"])


def test_every_block_comes_once_an_epoch_in_another_order(tokens, tokenizer):
    blocks = make(tokens, tokenizer)
    epochs = [[tuple(blocks.block(n + e * blocks.blocks)) for n in range(blocks.blocks)] for e in (0, 1)]
    assert sorted(epochs[0]) == sorted(epochs[1])
    assert epochs[0] != epochs[1]


def test_loss_equals_the_library_head(tokens, tokenizer):
    torch.manual_seed(0)
    model = BertForMaskedLM(
        BertConfig(vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                   intermediate_size=64, max_position_embeddings=LENGTH)
    ).eval()  # fmt: skip
    batch = make(tokens, tokenizer)[0]
    assert objectives.masked_lm_loss(model, batch).item() == pytest.approx(model(**batch).loss.item(), abs=1e-5)


def test_too_few_tokens_for_a_block(tokenizer):
    with pytest.raises(ValueError, match="do not fill one block"):
        make(np.arange(10), tokenizer)
