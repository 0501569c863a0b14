// A member of sarama; arguments: BOOTSTRAP GROUP TOPIC ASSIGNOR NAME [INSTANCE].
// It prints "NAME PARTITION OFFSET VALUE" for each record, and marks it for the automatic commit.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

var strategies = map[string]sarama.BalanceStrategy{
	"range":      sarama.NewBalanceStrategyRange(),
	"roundrobin": sarama.NewBalanceStrategyRoundRobin(),
	"sticky":     sarama.NewBalanceStrategySticky(),
}

type handler struct{ name string }

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (h handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, isOpen := <-claim.Messages():
			if !isOpen {
				return nil
			}
			fmt.Printf("%s %d %d %s\n", h.name, message.Partition, message.Offset, message.Value)
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

func settings(arguments []string) *sarama.Config {
	settings := sarama.NewConfig()
	settings.Version = sarama.V2_8_0_0
	settings.ClientID = arguments[4]
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	settings.Consumer.Offsets.AutoCommit.Interval = 500 * time.Millisecond
	settings.Consumer.Group.Session.Timeout = 10 * time.Second
	settings.Consumer.Group.Heartbeat.Interval = time.Second
	settings.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[arguments[3]]}
	if len(arguments) > 5 {
		settings.Consumer.Group.InstanceId = arguments[5]
	}
	return settings
}

func main() {
	arguments := os.Args[1:]
	group, err := sarama.NewConsumerGroup(strings.Split(arguments[0], ","), arguments[1], settings(arguments))
	if err != nil {
		panic(err)
	}
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for ended.Err() == nil {
		if err := group.Consume(ended, []string{arguments[2]}, handler{arguments[4]}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			time.Sleep(500 * time.Millisecond)
		}
	}
	group.Close()
}
