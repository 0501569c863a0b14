// A member of franz-go; arguments: BOOTSTRAP GROUP TOPIC ASSIGNOR NAME [INSTANCE].
// It prints "NAME PARTITION OFFSET VALUE" for each record, and commits after each poll.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func options(arguments []string) []kgo.Opt {
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(arguments[0], ",")...),
		kgo.ConsumerGroup(arguments[1]),
		kgo.ConsumeTopics(arguments[2]),
		kgo.Balancers(balancers[arguments[3]]),
		kgo.ClientID(arguments[4]),
		kgo.SessionTimeout(10 * time.Second),
		kgo.HeartbeatInterval(time.Second),
		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	if len(arguments) > 5 {
		options = append(options, kgo.InstanceID(arguments[5]))
	}
	return options
}

func main() {
	arguments := os.Args[1:]
	client, err := kgo.NewClient(options(arguments)...)
	if err != nil {
		panic(err)
	}
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for ended.Err() == nil {
		fetches := client.PollFetches(ended)
		output := bufio.NewWriter(os.Stdout)
		fetches.EachRecord(func(record *kgo.Record) {
			fmt.Fprintf(output, "%s %d %d %s\n", arguments[4], record.Partition, record.Offset, record.Value)
		})
		output.Flush()
		if ended.Err() == nil && fetches.NumRecords() > 0 {
			timeout, cancel := context.WithTimeout(ended, 10*time.Second)
			if err := client.CommitUncommittedOffsets(timeout); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			cancel()
		}
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
}
