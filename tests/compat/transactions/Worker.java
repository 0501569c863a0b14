import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A transactional producer of Java's client; arguments: BOOTSTRAP TRANSACTIONAL_ID TIMEOUT_MS. Its
 * commands and answers are those of worker.py.
 */
public class Worker {
    private final KafkaProducer<String, String> producer;

    private Worker(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", arguments[1]);
        settings.put("transaction.timeout.ms", arguments[2]);
        settings.put("max.block.ms", "30000");
        settings.put("delivery.timeout.ms", "30000");
        settings.put("request.timeout.ms", "15000");
        settings.put("key.serializer", StringSerializer.class);
        settings.put("value.serializer", StringSerializer.class);
        producer = new KafkaProducer<>(settings);
    }

    public static void main(String[] arguments) throws Exception {
        Worker worker = new Worker(arguments);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String answer = "ok";
            try {
                worker.execute(line.split(" "));
            } catch (ExecutionException failed) {
                answer = worker.error(failed.getCause());
            } catch (RuntimeException failed) {
                answer = worker.error(failed);
            }
            System.out.println(answer);
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private String error(Throwable error) {
        System.err.println(error);
        return "error " + error.getClass().getSimpleName();
    }

    private void execute(String[] command) throws ExecutionException, InterruptedException {
        switch (command[0]) {
            case "init" -> producer.initTransactions();
            case "begin" -> producer.beginTransaction();
            case "send" -> producer.send(
                new ProducerRecord<>(command[1], Integer.parseInt(command[2]), null, command[3])).get();
            case "offsets" -> producer.sendOffsetsToTransaction(
                Map.of(
                    new TopicPartition(command[2], Integer.parseInt(command[3])),
                    new OffsetAndMetadata(Long.parseLong(command[4]))),
                new ConsumerGroupMetadata(command[1]));
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            default -> throw new IllegalArgumentException(command[0]);
        }
    }
}
