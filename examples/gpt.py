"""A small GPT in plain PyTorch: pre-norm blocks, causal attention, tied embeddings."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    """The sizes of a model; `width` must be a multiple of `head_width`."""

    layers: int = 4
    width: int = 128
    context: int = 128
    vocabulary: int = 256
    head_width: int = 32

    def __post_init__(self) -> None:
        for name in ("layers", "width", "context", "vocabulary", "head_width"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} {getattr(self, name)}; expected at least 1")
        if self.width % self.head_width:
            raise ValueError(f"width {self.width}; expected a multiple of {self.head_width}")


class Attention(nn.Module):
    """Causal self-attention with width / head_width heads."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.head_width = shape.head_width
        self.project_in = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.project_out = nn.Linear(shape.width, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Of (batch, length, width), the same shape."""
        batch, length, width = x.shape
        heads = self.project_in(x).view(batch, length, 3, -1, self.head_width)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        out: Tensor = self.project_out(mixed.transpose(1, 2).reshape(batch, length, width))
        return out


class Block(nn.Module):
    """Attention and a four times wider MLP, each normalised before and added after."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(shape.width, bias=False)
        self.attention = Attention(shape)
        self.mlp_norm = nn.LayerNorm(shape.width, bias=False)
        self.widen = nn.Linear(shape.width, 4 * shape.width, bias=False)
        self.narrow = nn.Linear(4 * shape.width, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Of (batch, length, width), the same shape."""
        x = x + self.attention(self.attention_norm(x))
        out: Tensor = x + self.narrow(functional.gelu(self.widen(self.mlp_norm(x))))
        return out


class GPT(nn.Module):
    """Next-token prediction over `shape.vocabulary` tokens."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.context, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                # What adds to the residual stream starts smaller, so that depth adds no variance.
                adds = name.endswith(("project_out.weight", "narrow.weight"))
                std = 0.02 / (2 * shape.layers) ** 0.5 if adds else 0.02
                nn.init.normal_(parameter, std=std)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats of targets[b, t] after tokens[b, :t + 1]; both int64."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        # The output layer is the embedding itself: one matrix, learned from both ends.
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
