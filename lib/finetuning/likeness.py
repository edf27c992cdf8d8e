"""Ranking a test set's candidates by cosine similarity of an encoder's vectors, without training."""

import numpy as np
from torch.nn import functional

from lib.benchmarks.datasets import Dataset
from lib.benchmarks.instances import Pair
from lib.finetuning.examples import Example, compute_each, pad
from lib.modeling import heads
from lib.modeling.loading import Encoder
from lib.vocabularies.special_tokens import find_frame
from lib.vocabularies.tokenization import encode_texts


def rank_by_likeness(encoder: Encoder, dataset: Dataset) -> dict[str, float]:
    """Rank a test set's candidates by the cosine of their vectors with the question's, and return the scores.

    A sentence's vector is the mean of the encoder's last states (Reimers & Gurevych 2019, section 3; Ozyurt 2020,
    section 2.2). Nothing is trained.
    """
    body = encoder.body(dropout=0.0).eval()
    pairs: list[Pair] = dataset.load("test")
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
    embeddings = embed_texts(body, encoder.tokenizer, texts, encoder.length(128))
    vectors = dict(zip(texts, embeddings, strict=True))
    likeness = [float(vectors[pair.first] @ vectors[pair.second]) for pair in pairs]
    return dataset.score(pairs, likeness)


def embed_texts(body, tokenizer, texts: list[str], length: int) -> list[np.ndarray]:
    """Return the mean of each text's last states, normalized to length 1."""
    frame = find_frame(tokenizer)
    capacity = frame.capacity(length, pair=False)
    sequences = [
        Example(number, frame.join(ids[:capacity])[0])
        for number, ids in enumerate(encode_texts(tokenizer, texts)["input_ids"])
    ]

    def embed(examples: list[Example]) -> np.ndarray:
        batch = pad(examples, frame.padding)
        mask = heads.mark_tokens(batch)
        states = heads.encode(body, batch) * mask[..., None]
        return functional.normalize(states.sum(1) / mask.sum(1, keepdim=True), dim=1).numpy()

    return compute_each(sequences, embed)
