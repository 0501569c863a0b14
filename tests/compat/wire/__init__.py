"""The same requests to a broker of Kafka and to one of ours, and what they answer."""

from tests.compat.wire import (
    config_cases,
    fault_cases,
    fetch_cases,
    frame_cases,
    group_cases,
    lookup_cases,
    produce_cases,
    quota_cases,
    record_cases,
    security_cases,
    topic_cases,
    transaction_cases,
)

CASES = (
    topic_cases.CASES
    | produce_cases.CASES
    | fault_cases.CASES
    | record_cases.CASES
    | fetch_cases.CASES
    | lookup_cases.CASES
    | config_cases.CASES
    | group_cases.CASES
    | transaction_cases.CASES
    | security_cases.CASES
    | quota_cases.CASES
    | frame_cases.CASES
    | topic_cases.LAST
)
