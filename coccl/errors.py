"""What coccl raises. Every message names the offending value and what is accepted."""


class Error(RuntimeError):
    """Base of every error of coccl."""


class ArgumentError(Error, ValueError):
    """The caller passed something that can never work: an unknown name, a bad size, a bad rank."""


class UnsupportedError(Error):
    """This build, this machine or this library version cannot do what was asked."""


class CudaError(Error):
    """A CUDA runtime call failed."""


class TransportError(Error):
    """Bytes could not be moved: a peer failed, the group was closed or a deadline passed."""
