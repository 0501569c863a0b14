import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Materialized;

/** Counts words with exactly_once_v2, one update for each word, and checks that no update is lost or repeated. */
public class WordCount {
  private static final int PARTITIONS = 4;
  private static final int LINES_PER_PAUSE = 100;

  public static void main(String[] args) throws Exception {
    String bootstrap = args[1];
    switch (args[0]) {
      case "create" -> create(bootstrap);
      case "feed" -> feed(bootstrap, Integer.parseInt(args[2]), Integer.parseInt(args[3]));
      case "count" -> count(bootstrap, args[2]);
      case "verify" -> verify(bootstrap, Integer.parseInt(args[2]));
      default -> throw new IllegalArgumentException(args[0]);
    }
  }

  private static String line(int number) {
    return "w" + (number % 7) + " w" + (number % 5) + " all";
  }

  private static void create(String bootstrap) throws Exception {
    Map<String, String> configs = Map.of("min.insync.replicas", "2");
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
      admin.createTopics(List.of(
          new NewTopic("lines", PARTITIONS, (short) 3).configs(configs),
          new NewTopic("counts", PARTITIONS, (short) 3).configs(configs))).all().get();
    }
  }

  private static void feed(String bootstrap, int lines, int pauseMs) throws Exception {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("acks", "all");
    properties.put("enable.idempotence", "true");
    var serializer = new StringSerializer();
    try (var producer = new KafkaProducer<>(properties, serializer, serializer)) {
      List<Future<RecordMetadata>> results = new ArrayList<>();
      for (int i = 0; i < lines; i++) {
        results.add(producer.send(new ProducerRecord<>("lines", "k" + i, line(i))));
        if (i % LINES_PER_PAUSE == LINES_PER_PAUSE - 1) Thread.sleep(pauseMs);
      }
      producer.flush();
      for (Future<RecordMetadata> result : results) result.get();
    }
  }

  private static void count(String bootstrap, String stateDir) throws Exception {
    Properties properties = new Properties();
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "word-count");
    properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
    properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    properties.put(StreamsConfig.STATE_DIR_CONFIG, stateDir);
    properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 3);
    properties.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, 1);
    properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
    // Without a cache every update is written, so that a repeated one shows.
    properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
    properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
    properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    properties.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
    properties.put(StreamsConfig.consumerPrefix("session.timeout.ms"), "10000");
    StreamsBuilder builder = new StreamsBuilder();
    builder.<String, String>stream("lines").flatMapValues(text -> Arrays.asList(text.split(" ")))
        .groupBy((key, word) -> word).count(Materialized.as("store")).toStream()
        .mapValues(number -> Long.toString(number)).to("counts");
    KafkaStreams streams = new KafkaStreams(builder.build(), properties);
    streams.setUncaughtExceptionHandler(error -> {
      error.printStackTrace();
      return StreamThreadExceptionResponse.REPLACE_THREAD;
    });
    Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
    streams.start();
    Thread.sleep(Long.MAX_VALUE);
  }

  private static void verify(String bootstrap, int lines) throws Exception {
    Map<String, Long> wanted = new HashMap<>();
    for (int i = 0; i < lines; i++) for (String word : line(i).split(" ")) wanted.merge(word, 1L, Long::sum);
    Map<String, Long> counted = new HashMap<>();
    int wrong = 0;
    long untilMs = System.currentTimeMillis() + 120_000;
    Properties properties = new Properties();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("isolation.level", "read_committed");
    var deserializer = new StringDeserializer();
    try (var consumer = new KafkaConsumer<>(properties, deserializer, deserializer)) {
      List<TopicPartition> partitions = new ArrayList<>();
      for (int i = 0; i < PARTITIONS; i++) partitions.add(new TopicPartition("counts", i));
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      while (!counted.equals(wanted) && System.currentTimeMillis() < untilMs) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
          long count = Long.parseLong(record.value());
          long before = counted.getOrDefault(record.key(), 0L);
          if (count != before + 1) {
            wrong++;
            System.out.printf("%s went from %d to %d at %d:%d%n",
                record.key(), before, count, record.partition(), record.offset());
          }
          counted.put(record.key(), count);
        }
      }
    }
    System.out.println("wanted " + wanted + "\ncounted " + counted + "\nupdates out of order: " + wrong);
    System.exit(wanted.equals(counted) && wrong == 0 ? 0 : 1);
  }
}
