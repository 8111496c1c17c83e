"""The arrays that a column's values are held in."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pinot_assets.segment.column.decimals import Decimals

Numbers: TypeAlias = npt.NDArray[np.generic]
Values: TypeAlias = Numbers | Decimals | pa.LargeBinaryArray
