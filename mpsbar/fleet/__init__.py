"""Monitors several computers: metrics for Prometheus, and other hosts over ssh."""
