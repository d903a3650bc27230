"""Solutions of the exercises, for teachers; see also answers.md."""

import math

import numpy as np
import torch


def cosine(u, v):
    return (u @ v) / (u.norm() * v.norm())


layers = [0]


def mixed(layers, w, gamma):
    return gamma * torch.einsum("j,jtd->td", w.softmax(0), layers)


raw_weights = [0, 0, 4]


def perplexity(bits):
    return 2 ** (sum(bits) / len(bits))


pair = (
    "The sound of the bells and the horns was loud.",
    "The sound of the bells and the horns were loud.",
)
bits = math.log2(968.0 / 70.4)
factor = math.sqrt(140.2 / 232.2)


def spans(tags):
    found = []
    for place, tag in enumerate(tags):
        if tag.startswith("B-"):
            found.append((tag[2:], place, place))
        elif tag.startswith("I-"):
            label, first, _ = found.pop()
            found.append((label, first, place))
    return found


def f1(right, found, gold):
    return 2 * right / (found + gold) if right else 0.0


def interval(scores):
    low, high = np.percentile(scores, [2.5, 97.5])
    return low, high


def nearest(vector, centroids):
    return max(
        centroids,
        key=lambda sense: float(
            torch.cosine_similarity(vector, centroids[sense], dim=0)
        ),
    )


SOLUTIONS = {
    "1a": cosine,
    "1b": layers,
    "1c": mixed,
    "1d": raw_weights,
    "2a": perplexity,
    "2b": pair,
    "2c": bits,
    "2d": factor,
    "3a": spans,
    "3b": f1,
    "3c": interval,
    "3d": nearest,
}
