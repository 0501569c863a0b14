// A transactional producer of franz-go; arguments: BOOTSTRAP TRANSACTIONAL_ID TIMEOUT_MS.
// Its commands and answers are those of worker.py.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const callTime = 30 * time.Second

type worker struct {
	client *kgo.Client
	id     string
}

func number(text string) int64 {
	parsed, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return parsed
}

// offsets commits an offset within the transaction; the client has this for its own consumer alone.
func (w *worker) offsets(ctx context.Context, group, topic string, partition int32, offset int64) error {
	producerID, epoch, err := w.client.ProducerID(ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = w.id, producerID, epoch, group
	for {
		response, err := add.RequestWith(ctx, w.client)
		if err != nil {
			return err
		}
		err = kerr.ErrorForCode(response.ErrorCode)
		if err == nil {
			break
		}
		if !kerr.IsRetriable(err) || ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group = w.id, producerID, epoch, group
	commit.Generation = -1
	row := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	row.Partition, row.Offset = partition, offset
	rows := kmsg.NewTxnOffsetCommitRequestTopic()
	rows.Topic, rows.Partitions = topic, append(rows.Partitions, row)
	commit.Topics = append(commit.Topics, rows)
	for {
		response, err := commit.RequestWith(ctx, w.client)
		if err != nil {
			return err
		}
		err = kerr.ErrorForCode(response.Topics[0].Partitions[0].ErrorCode)
		if err == nil || !kerr.IsRetriable(err) || ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (w *worker) execute(ctx context.Context, command string, words []string) error {
	switch command {
	case "init":
		_, _, err := w.client.ProducerID(ctx)
		return err
	case "begin":
		return w.client.BeginTransaction()
	case "send":
		record := &kgo.Record{Topic: words[0], Partition: int32(number(words[1])), Value: []byte(words[2])}
		return w.client.ProduceSync(ctx, record).FirstErr()
	case "offsets":
		return w.offsets(ctx, words[0], words[1], int32(number(words[2])), number(words[3]))
	case "commit":
		return w.client.EndTransaction(ctx, kgo.TryCommit)
	case "abort":
		if err := w.client.AbortBufferedRecords(ctx); err != nil {
			return err
		}
		return w.client.EndTransaction(ctx, kgo.TryAbort)
	}
	return errors.New("unknown command")
}

func name(err error) string {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return strings.ReplaceAll(err.Error(), " ", "-")
}

func main() {
	timeout := time.Duration(number(os.Args[3])) * time.Millisecond
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.TransactionalID(os.Args[2]),
		kgo.TransactionTimeout(timeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		panic(err)
	}
	w := &worker{client, os.Args[2]}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		words := strings.Split(input.Text(), " ")
		ctx, cancel := context.WithTimeout(context.Background(), callTime)
		if err := w.execute(ctx, words[0], words[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			fmt.Println("error", name(err))
		} else {
			fmt.Println("ok")
		}
		cancel()
	}
}
