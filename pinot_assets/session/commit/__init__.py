"""From a built attempt to a published snapshot: stage, audit, switch."""
