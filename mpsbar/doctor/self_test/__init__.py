"""What mpsbar can check of itself: mpsbar doctor --self-test."""
