"""Files into Apache Pinot, all or nothing."""
