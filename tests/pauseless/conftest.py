"""The cluster that most of these tests share; the others, whose kills last, have one of their own."""

from __future__ import annotations

from fakes.pauseless.shared import code_allowed, shared, whole

__all__ = ["code_allowed", "shared", "whole"]
