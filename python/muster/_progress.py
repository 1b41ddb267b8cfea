"""Progress bars, if tqdm is installed."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Optional, Sized

from .futures import as_completed

__all__ = ["progress"]


def _tqdm() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


def bar_over(items: Iterator[Any], total: Optional[int], words: Any) -> Iterator[Any]:
    """Iterate over the items with a progress bar."""
    tqdm = _tqdm()
    if tqdm is None:
        return items
    title = words if isinstance(words, str) else None

    def give() -> Iterator[Any]:
        with tqdm(total=total, desc=title) as bar:
            for item in items:
                bar.update()
                yield item
                del item

    return give()


def progress(fs: Iterable[Any], timeout: Optional[float] = None,
             desc: Optional[str] = None, **options: Any) -> Iterator[Any]:
    """as_completed(fs, timeout) with a progress bar of tqdm, if that is installed;
    options are tqdm's."""
    futures = fs if isinstance(fs, Sized) else list(fs)
    tqdm = _tqdm()
    done = as_completed(futures, timeout)
    if tqdm is None:
        return done
    bar: Iterator[Any] = iter(tqdm(done, total=len(futures), desc=desc, **options))
    return bar
