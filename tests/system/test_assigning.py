from __future__ import annotations

import socket

import pytest

from corral.errors import InvalidValueError
from corral.services.assigning import assign_port


def test_a_port_that_somebody_has_is_skipped_where_the_kernel_is_asked() -> None:
    preferred = assign_port("fb563322", base=23000)
    with socket.create_server(("127.0.0.1", preferred)):
        assert assign_port("fb563322", base=23000) == preferred
        assert assign_port("fb563322", base=23000, probe=True) != preferred
        with pytest.raises(InvalidValueError, match="no free port"):
            assign_port("fb563322", base=preferred, max_search=1, probe=True)


def test_a_probe_of_one_s_own_is_asked_instead() -> None:
    assert assign_port("x", base=9000, max_search=3, probe=lambda port: port == 9001) == 9001
