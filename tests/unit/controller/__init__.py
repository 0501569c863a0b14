"""Tests of the controller and of the topic admin."""
