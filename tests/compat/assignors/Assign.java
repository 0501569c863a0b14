import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** Reads a case in each line and prints what Kafka's own assignor makes of it. */
public class Assign {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Object answer;
            try {
                answer = assigned(mapper.readTree(line));
            } catch (RuntimeException failure) {
                answer = failure.getClass().getName();
            }
            out.println(mapper.writeValueAsString(answer));
        }
        out.flush();
    }

    private static Map<String, List<String>> assigned(JsonNode given) {
        Cluster cluster = cluster(given.get("topics"));
        Map<String, ConsumerPartitionAssignor.Subscription> members = new HashMap<>();
        given.get("members").fields().forEachRemaining(
            member -> members.put(member.getKey(), subscription(member.getValue())));
        Map<String, List<String>> result = new TreeMap<>();
        assignor(given.get("assignor").asText())
            .assign(cluster, new ConsumerPartitionAssignor.GroupSubscription(members)).groupAssignment()
            .forEach((member, assignment) -> {
                List<String> texts = new ArrayList<>();
                assignment.partitions().forEach(partition -> texts.add(partition.toString()));
                result.put(member, texts);
            });
        return result;
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        switch (name) {
            case "range": return new RangeAssignor();
            case "roundrobin": return new RoundRobinAssignor();
            case "sticky": return new StickyAssignor();
            case "cooperative-sticky": return new CooperativeStickyAssignor();
            default: throw new IllegalArgumentException(name);
        }
    }

    private static Cluster cluster(JsonNode topics) {
        Map<String, Node> nodes = new TreeMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.fields().forEachRemaining(topic -> {
            int number = 0;
            for (JsonNode racks : topic.getValue()) {
                Node[] replicas = new Node[racks.size()];
                for (int i = 0; i < replicas.length; i++) {
                    String rack = racks.get(i).asText();
                    replicas[i] = nodes.computeIfAbsent(rack, r -> new Node(nodes.size(), "h", 1, r));
                }
                partitions.add(new PartitionInfo(topic.getKey(), number++, Node.noNode(), replicas, replicas));
            }
        });
        return new Cluster("c", nodes.values(), partitions, Set.of(), Set.of());
    }

    private static ConsumerPartitionAssignor.Subscription subscription(JsonNode member) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        List<TopicPartition> owned = new ArrayList<>();
        member.path("owned").forEach(key -> owned.add(new TopicPartition(key.get(0).asText(), key.get(1).asInt())));
        ConsumerPartitionAssignor.Subscription subscription = new ConsumerPartitionAssignor.Subscription(
            topics, bytes(member.path("user_data")), owned, member.path("generation").asInt(-1), text(member.get("rack")));
        subscription.setGroupInstanceId(text(member.get("instance")));
        return subscription;
    }

    private static Optional<String> text(JsonNode value) {
        return value.isNull() ? Optional.empty() : Optional.of(value.asText());
    }

    private static ByteBuffer bytes(JsonNode hex) {
        return hex.isTextual() ? ByteBuffer.wrap(HexFormat.of().parseHex(hex.asText())) : null;
    }
}
