"""Sequences of tokens: frames, padding, batches."""

import copy

import numpy as np
import small_encoders
import torch
from tokenizers import processors

from lib.finetuning import likeness
from lib.finetuning.examples import BucketedBatches, Example, cut_evenly, pad
from lib.vocabularies.special_tokens import find_frame


def make(lengths):
    return [Example(number, list(range(1, length + 1)), target=number) for number, length in enumerate(lengths)]


def test_frames_are_those_of_the_tokenizer(tokenizer):
    frame = find_frame(tokenizer)
    a, b = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("a b", "c"))
    assert frame.join(a) == (tokenizer("a b")["input_ids"], 0)
    tokens, second = frame.join(a, b)
    pair = tokenizer("a b", "c")
    assert tokens == pair["input_ids"] and pair["token_type_ids"] == [0] * second + [1] * (len(tokens) - second)
    assert frame.capacity(16, pair=False) == 14 and frame.capacity(16, pair=True) == 13

    roberta = copy.deepcopy(tokenizer)
    cls, sep = roberta.cls_token_id, roberta.sep_token_id
    roberta.backend_tokenizer.post_processor = processors.RobertaProcessing(("[SEP]", sep), ("[CLS]", cls))
    assert find_frame(roberta).join([5], [6]) == ([cls, 5, sep, sep, 6, sep], 4)


def test_padding_and_second_texts():
    batch = pad([Example(0, [7, 8, 9, 6], second=2), Example(1, [7, 9])], padding=3)
    assert batch["input_ids"].tolist() == [[7, 8, 9, 6], [7, 9, 3, 3]]
    assert batch["token_type_ids"].tolist() == [[0, 0, 1, 1], [0, 0, 0, 0]]
    assert batch["attention_mask"].tolist() == [[True] * 4, [True, True, False, False]]
    assert set(pad(make([3, 3]), 0)) == {"input_ids"}  # full sequences need no mask


def collate(sequences):
    return {"ids": torch.tensor([sequence.instance for sequence in sequences])}


def test_batches_have_every_sequence_once_an_epoch_with_little_padding():
    sequences = make([3 + (number * 7) % 40 for number in range(230)])
    batches, again = (BucketedBatches(sequences, collate, batch_size=8, epochs=2, steps=None, seed=3) for _ in range(2))
    half = len(batches) // 2
    for epoch in (batches.plan[:half], batches.plan[half:]):
        assert sorted(i for batch in epoch for i in batch) == list(range(len(sequences)))
    assert batches.plan[:half] != batches.plan[half:] and again.plan == batches.plan
    positions = sum(n * length for n, length in map(batches.shape, range(len(batches))))
    assert 2 * sum(len(sequence.tokens) for sequence in sequences) / positions > 0.9
    parts = [batches[5, part, 2]["ids"].tolist() for part in range(2)]
    assert sorted(sum(parts, [])) == sorted(batches.plan[5])
    for steps, expected in ((None, 9), (8, 8)):  # steps take the place of epochs
        assert len(BucketedBatches(make([4] * 10), collate, batch_size=4, epochs=3, steps=steps, seed=0)) == expected


def test_evaluation_takes_every_sequence_once_in_batches_of_few_tokens():
    assert list(cut_evenly(make([5, 100, 7, 300, 6]), tokens=200)) == [[3], [1, 2], [4, 0]]


def test_padding_does_not_change_the_vector_of_a_text_even_without_a_padding_token(tmp_path):
    body = small_encoders.make(tmp_path, "bert", small_encoders.SIZE).eval()
    tokenizer = small_encoders.make_tokenizer()
    tokenizer.pad_token = None
    (alone,) = likeness.embed_texts(body, tokenizer, ["pain"], 16)
    beside, _ = likeness.embed_texts(body, tokenizer, ["pain", "aspirin relieves pain"], 16)
    assert tokenizer.pad_token_id is None and np.allclose(alone, beside, atol=1e-6)
