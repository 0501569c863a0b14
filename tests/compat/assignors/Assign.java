import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** Reads a case in each line and prints what Kafka's own assignor makes of it. */
public class Assign {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(mapper.writeValueAsString(assigned(mapper.readTree(line))));
        }
    }

    private static Map<String, List<String>> assigned(JsonNode given) {
        Map<String, Node> nodes = new TreeMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        given.get("topics").fields().forEachRemaining(topic -> {
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
        Cluster cluster = new Cluster("c", nodes.values(), partitions, Set.of(), Set.of());
        Map<String, ConsumerPartitionAssignor.Subscription> members = new HashMap<>();
        given.get("members").fields().forEachRemaining(member -> {
            List<String> topics = new ArrayList<>();
            member.getValue().get("topics").forEach(topic -> topics.add(topic.asText()));
            JsonNode rack = member.getValue().get("rack");
            JsonNode instance = member.getValue().get("instance");
            ConsumerPartitionAssignor.Subscription subscription = new ConsumerPartitionAssignor.Subscription(
                topics, null, List.of(), -1, rack.isNull() ? Optional.empty() : Optional.of(rack.asText()));
            subscription.setGroupInstanceId(instance.isNull() ? Optional.empty() : Optional.of(instance.asText()));
            members.put(member.getKey(), subscription);
        });
        ConsumerPartitionAssignor assignor =
            given.get("assignor").asText().equals("range") ? new RangeAssignor() : new RoundRobinAssignor();
        Map<String, List<String>> result = new TreeMap<>();
        assignor.assign(cluster, new ConsumerPartitionAssignor.GroupSubscription(members)).groupAssignment()
            .forEach((member, assignment) -> {
                List<String> texts = new ArrayList<>();
                assignment.partitions().forEach(partition -> texts.add(partition.toString()));
                result.put(member, texts);
            });
        return result;
    }
}
