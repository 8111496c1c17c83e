"""The stack with its S3 part, and the fork server for driver processes."""

from __future__ import annotations

import pytest
from fakes.processes.forked import preload

from pinot_assets.local.stack import Stack
from pinot_assets.settings.local_stack import StackState


@pytest.fixture(scope="session")
def stack_with_s3(stack: StackState) -> StackState:
    preload()
    return Stack(stack.home).up(s3=True)
