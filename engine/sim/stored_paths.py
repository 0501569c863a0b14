"""Patterns of the node paths that the simulation reads; groups are topic, partition or broker."""

from __future__ import annotations

import re

STATE_PATH = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
TOPIC_PATH = re.compile(r"/brokers/topics/([^/]+)")
BROKER_PATH = re.compile(r"/brokers/ids/(\d+)")
DOOM_PATH = re.compile(r"/admin/delete_topics/([^/]+)")
CONFIG_PATH = re.compile(r"/config/topics/([^/]+)")
