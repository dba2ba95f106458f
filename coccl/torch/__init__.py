"""The PyTorch backend: a process group that compresses, over stock NCCL and gloo.

`torch.distributed.init_process_group("coccl")` finds it through an entry point; nothing here needs
to be imported by a user.
"""

from coccl.torch.process_group import CocclProcessGroup, create

__all__ = ["CocclProcessGroup", "create"]
