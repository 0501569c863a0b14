import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.state.Stores;

/**
 * Members of share groups and of streams groups, until stdin ends; "ready" is printed once they run.
 *
 * share BOOTSTRAP GROUP TOPIC...; count BOOTSTRAP GROUP STATE_DIR; copy BOOTSTRAP GROUP STATE_DIR.
 */
public final class Groups {
    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("share")) {
            share(arguments[1], arguments[2], List.of(arguments).subList(3, arguments.length));
        } else {
            streams(arguments[1], arguments[2], arguments[3], arguments[0].equals("count"));
        }
    }

    private static void share(String bootstrap, String group, List<String> topics) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.id", group);
        properties.put("client.id", "member-of-" + group);
        StringDeserializer text = new StringDeserializer();
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(properties, text, text)) {
            consumer.subscribe(topics);
            boolean isReady = false;
            while (System.in.available() == 0) {
                int count = consumer.poll(Duration.ofMillis(200)).count();
                if (count == 0) {
                    continue;
                }
                consumer.commitSync();
                if (!isReady) {
                    System.out.println("ready");
                    isReady = true;
                }
            }
        }
    }

    private static void streams(String bootstrap, String group, String directory, boolean isCounting) throws Exception {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, group);
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, directory);
        properties.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, "streams");
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put("consumer.auto.offset.reset", "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        if (isCounting) {
            builder.<String, String>stream("lines")
                .groupBy((key, value) -> value, Grouped.as("words"))
                .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")));
        } else {
            builder.<String, String>stream("lines").to("copies");
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.start();
        while (streams.state() != KafkaStreams.State.RUNNING) {
            Thread.sleep(100);
        }
        System.out.println("ready");
        System.in.read();
        streams.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
    }
}
