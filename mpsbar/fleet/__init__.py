"""More than one Mac: metrics for Prometheus, and other hosts over ssh."""
