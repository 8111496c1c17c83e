"""What is asked of Pinot's rebalance, in Pinot's own options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from pinot_assets.table_spec.yaml.document import did_you_mean

USUAL: Final[Mapping[str, str]] = {
    "reassignInstances": "true",
    "includeConsuming": "true",
    "downtime": "false",
    "bestEfforts": "false",
    "minAvailableReplicas": "-1",
}
"""What is asked unless something else is: the defaults of 1.5.1. Those before 1.4 were others."""

OPTIONS: Final = frozenset(
    (
        *USUAL,
        *("allowPeerDownloadDataLoss", "batchSizePerServer", "bootstrap", "disableSummary"),
        *(
            "diskUtilizationThreshold",
            "externalViewCheckIntervalInMs",
            "externalViewStabilizationTimeoutInMs",
        ),
        *("forceCommit", "forceCommitBatchSize", "forceCommitBatchStatusCheckIntervalMs"),
        *("forceCommitBatchStatusCheckTimeoutMs", "heartbeatIntervalInMs", "heartbeatTimeoutInMs"),
        *("lowDiskMode", "maxAttempts", "minimizeDataMovement", "retryInitialDelayInMs", "updateTargetTier"),
    )
)
"""What Pinot 1.5.1 knows, besides what is this guard's own business. Pinot ignores a name that it does not
know, so that a slip of the pen would be a rebalance with other guarantees.
Source: PinotTableRestletResource.rebalance."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of Pinot.

    :ivar options: Pinot's query parameters beside `dryRun`, `preChecks` and `type`; all that matter are
        there, since releases have different defaults.
    """

    options: Mapping[str, str]

    @classmethod
    def of(cls, **differs: str) -> Self:
        """The usual one with other options.

        :raises ValueError: Pinot knows no such option, or `minAvailableReplicas` is no number.
        """
        for name in sorted(differs.keys() - OPTIONS):
            raise ValueError(f"Pinot's rebalance has no option {name}; " + _near(name))
        made = cls({**USUAL, **differs})
        _ = made.min_available
        return made

    def says(self, name: str) -> bool:
        """A switch among the options."""
        return self.options.get(name, "false").lower() == "true"

    @property
    def min_available(self) -> int:
        """As it stands: negative for so many that may be away."""
        return int(self.options["minAvailableReplicas"])

    def kept(self, replicas: int) -> int:
        """Replicas that Pinot keeps where segments shall have so many."""
        return self.min_available if self.min_available >= 0 else max(replicas + self.min_available, 0)


def _near(name: str) -> str:
    return did_you_mean(name, OPTIONS) or f"it has {', '.join(sorted(OPTIONS))}"
