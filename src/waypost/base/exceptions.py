"""Exceptions that have become a response: what they keep alive is released."""


def release_frames(error: BaseException) -> None:
    """Remove the tracebacks of an error and of its causes.

    Each refers to the frames that the error passed through, and these to the request, its body and often to the error
    itself: a cycle, which would keep all of them until the garbage collector runs.
    """
    each: BaseException | None = error
    while each is not None and (each.__traceback__ is not None or each is error):
        each.__traceback__ = None
        before = each.__cause__ or each.__context__
        each = None if before is each else before
