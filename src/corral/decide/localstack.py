"""LocalStack, the one image whose containers start containers of their own."""

from __future__ import annotations


def is_localstack(image_name: str) -> bool:
    """Whether an image is LocalStack's, which starts containers of its own."""
    last = image_name.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return last in {"localstack", "localstack-pro"}
