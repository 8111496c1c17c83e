"""Numbers of tables for Prometheus.

Each module turns what was read of one subject into samples. `collector` holds them for Prometheus to scrape;
`pushing` sends them to a Pushgateway.
"""
