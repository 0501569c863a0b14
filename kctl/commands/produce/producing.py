"""Implementation of `kctl produce`: read the input, make records, send them in batches.

A batch is sent when it is full, when the input ends, and `--linger` after its first record: so
`tail -f log | kctl produce` is prompt, and a large file is sent in large batches.

Ctrl-C ends the reading; records read up to then are still sent, unless a second Ctrl-C follows.
"""

from __future__ import annotations

import sys
from functools import partial

from engine.client.blocking import KafkaClient
from engine.client.producing import Producer, ProducerCallbacks
from engine.client.transactional_producer import TransactionalProducer
from engine.errors import EngineError
from kctl.commands.produce.input import FileRecords, RecordSource, create_record_source
from kctl.commands.produce.report import ProduceReport
from kctl.commands.produce.request import (
    ProduceRequest,
    producer_options,
    transaction_timeout_ms,
)
from kctl.commands.produce.transactions import TransactionalInput, transaction_options
from kctl.connect import ClusterOptions, connect
from kctl.input_lines import LineTooLong, input_bytes, input_lines
from kctl.interrupts import HeldInterrupts, deferred_interrupts
from kctl.record_input import UnreadableRecord
from kctl.render import check_format
from kctl.render.rate_line import RateLine


def produce_records(options: ClusterOptions, request: ProduceRequest) -> int:
    """Produce the records of stdin or files to a topic, and report them; returns the exit code."""
    source = create_record_source(request)
    settings = producer_options(request)
    transactions = transaction_options(request)
    if request.output is not None:
        check_format(request.output)
    with connect(options) as client:
        rate_line = _rate_line(client, request)
        skipped = () if isinstance(source, FileRecords) else source.skipped
        limits = partial(_limits_text, client, request.topic)
        report = ProduceReport(
            request, options.timeout_s, skipped=skipped, rate_line=rate_line, limits=limits
        )
        client.view_of_existing([request.topic])
        notes = ProducerCallbacks(report.on_retry, report.on_plain)
        try:
            with deferred_interrupts() as interrupts:
                if transactions is None:
                    producer = Producer(client, settings, notes)
                    _Run(producer, source, report, interrupts).send_all()
                else:
                    transactional = TransactionalProducer(
                        client,
                        transactions.transactional_id,
                        settings,
                        notes,
                        timeout_ms=transaction_timeout_ms(request),
                    )
                    records = TransactionalInput(transactional, transactions)
                    _TransactionalRun(records, source, report, interrupts).send_all()
        finally:
            # Complete the report of stored records after errors, too.
            report.close()
    return report.exit_code


def _rate_line(client: KafkaClient, request: ProduceRequest) -> RateLine | None:
    """Return a progress line of the bytes of stdin; None if rows go to the same terminal."""
    if request.output is not None and sys.stdout.isatty():
        return None
    return RateLine(client.clock, total_bytes=input_bytes(sys.stdin.buffer))


def _limits_text(client: KafkaClient, topic: str) -> str | None:
    """Return the topic's size limits as a note after a record that is too large.

    None if they cannot be requested.
    """
    from engine.client.config_admin import ConfigResourceType, Resource, describe_configs

    resource = Resource(ConfigResourceType.TOPIC, topic)
    names = ("max.message.bytes", "segment.bytes")
    try:
        found = describe_configs(client, [resource], names=names)[resource]
    except EngineError:
        return None
    if isinstance(found, EngineError):
        return None
    values = ", ".join(f"{entry.name}={entry.value}" for entry in found)
    return f"limits of {topic}: {values}" if values else None


class _Run:
    """One run: from reading the input to the results of its last batch."""

    def __init__(
        self,
        producer: Producer | TransactionalInput,
        source: RecordSource | FileRecords,
        report: ProduceReport,
        interrupts: HeldInterrupts,
    ) -> None:
        """Create a run that sends the records of `source`; `interrupts` defers Ctrl-C meanwhile."""
        self._producer = producer
        self._source = source
        self._report = report
        self._interrupts = interrupts

    def send_all(self) -> None:
        """Send the complete input, and report the records that are stored.

        After an error or Ctrl-C the records read up to then are still sent, unless a second Ctrl-C
        follows.
        """
        report, producer = self._report, self._producer
        try:
            self._send_source()
        except (UnreadableRecord, LineTooLong) as error:
            report.count_results(producer.flush())
            report.stop_at(error, error.line)
        except (KeyboardInterrupt, EngineError):
            if not self._interrupts.is_urgent:
                report.count_results(producer.flush())
            raise
        else:
            report.count_results(producer.flush())

    def _send_source(self) -> None:
        """Send the records of the input, which are files or lines."""
        if isinstance(self._source, FileRecords):
            self._source.feed(self._producer)
        else:
            self._send_lines(self._source)

    def _send_lines(self, source: RecordSource) -> None:
        """Send the records of stdin's lines until its end or the first failure.

        Open batches are sent at once when the input pauses.
        """
        report, producer = self._report, self._producer
        for chunk in input_lines(sys.stdin.buffer, self._interrupts, self._input_wait_ms):
            if chunk is None:
                report.count_results(producer.flush())
            else:
                source.feed(producer, chunk)
                report.read_up_to(chunk.places.stop - 1, chunk.end_bytes)
                report.count_results(producer.poll(0))
            if report.has_failed:
                return

    def _input_wait_ms(self) -> int | None:
        """Return how long to wait for the next input line, in ms.

        That is until a batch is due, or 0 while requests are in flight. None, without a batch to
        send, waits without a limit.
        """
        due_ms = self._producer.due_in_ms()
        if due_ms is not None:
            return due_ms
        return None if self._producer.is_idle else 0


class _TransactionalRun(_Run):
    """A run with transactions: records are counted once their transaction is committed."""

    def __init__(
        self,
        records: TransactionalInput,
        source: RecordSource | FileRecords,
        report: ProduceReport,
        interrupts: HeldInterrupts,
    ) -> None:
        """Create a run that sends in transactions; `records` is the producer that ends them."""
        super().__init__(records, source, report, interrupts)
        self._records = records

    def send_all(self) -> None:
        """Send the complete input and commit; after an error or Ctrl-C, abort the open transaction.

        The report names the first line that is not committed, where a next run continues.
        """
        report, records = self._report, self._records
        try:
            self._send_source()
            report.count_results(records.finish())
        except (KeyboardInterrupt, EngineError) as error:
            report.count_results(records.poll())
            first_open_place = records.first_open_place
            if records.may_be_committed:
                report.warn_of_doubtful_commit(records.transactional_id)
            # A second Ctrl-C leaves the abort to the coordinator's transaction timeout.
            elif not self._interrupts.is_urgent:
                self._abort()
            if first_open_place is None or isinstance(error, KeyboardInterrupt):
                raise
            report.stop_at(error, first_open_place)
        finally:
            report.note(records.summary())

    def _abort(self) -> None:
        """Abort the open transaction; if that fails, print a warning."""
        try:
            self._records.give_up()
        except EngineError as error:
            # The coordinator aborts it after the transaction timeout.
            self._report.note(f"warning: the open transaction could not be aborted: {error}")
