"""Tests of the demos."""
