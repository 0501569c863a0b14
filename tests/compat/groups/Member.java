import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of Java's client; arguments: BOOTSTRAP GROUP TOPIC ASSIGNOR NAME [INSTANCE]. It prints
 * "NAME PARTITION OFFSET VALUE" for each record, and commits after each poll.
 */
public class Member {
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "RangeAssignor",
        "roundrobin", "RoundRobinAssignor",
        "sticky", "StickyAssignor",
        "cooperative-sticky", "CooperativeStickyAssignor");

    public static void main(String[] arguments) {
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings(arguments));
        Thread reader = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                reader.join(15000);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }));
        consumer.subscribe(List.of(arguments[2]));
        try {
            while (true) {
                readAndCommit(consumer, arguments[4]);
            }
        } catch (WakeupException end) {
            // The hook above asked for it.
        } finally {
            consumer.close(Duration.ofSeconds(10));
        }
    }

    private static Properties settings(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("partition.assignment.strategy",
            "org.apache.kafka.clients.consumer." + ASSIGNORS.get(arguments[3]));
        settings.put("client.id", arguments[4]);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("session.timeout.ms", "10000");
        settings.put("heartbeat.interval.ms", "1000");
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", StringDeserializer.class);
        if (arguments.length > 5) {
            settings.put("group.instance.id", arguments[5]);
        }
        return settings;
    }

    private static void readAndCommit(KafkaConsumer<String, String> consumer, String name) {
        ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(300));
        StringBuilder lines = new StringBuilder();
        for (ConsumerRecord<String, String> record : records) {
            lines.append(name).append(' ').append(record.partition()).append(' ')
                .append(record.offset()).append(' ').append(record.value()).append('\n');
        }
        System.out.print(lines);
        System.out.flush();
        if (records.isEmpty()) {
            return;
        }
        try {
            consumer.commitSync();
        } catch (CommitFailedException | RebalanceInProgressException | TimeoutException refused) {
            System.err.println(refused);
        }
    }
}
