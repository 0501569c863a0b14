import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.Admin;

/** Reads the settings of a client in each line and prints how its requests end. */
public class Connect {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        ExecutorService threads = Executors.newFixedThreadPool(4);
        List<Future<String>> answers = new ArrayList<>();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode given = mapper.readTree(line);
            answers.add(threads.submit(() -> outcome(given)));
        }
        for (Future<String> answer : answers) System.out.println(mapper.writeValueAsString(answer.get()));
        System.exit(0);
    }

    private static String outcome(JsonNode given) {
        Properties settings = new Properties();
        given.get("settings").fields().forEachRemaining(
            entry -> settings.put(entry.getKey(), entry.getValue().asText()));
        try (Admin admin = Admin.create(settings)) {
            admin.describeCluster().nodes().get();
            long until = System.currentTimeMillis() + given.get("duration_ms").asLong();
            do {
                admin.describeCluster().nodes().get();
                Thread.sleep(200);
            } while (System.currentTimeMillis() < until);
            return "ok";
        } catch (Exception failure) {
            Throwable cause = failure;
            while (cause.getCause() != null && !isTold(cause)) cause = cause.getCause();
            return cause.getClass().getSimpleName() + ": " + cause.getMessage();
        }
    }

    /** The exception that a client's program sees. */
    private static boolean isTold(Throwable failure) {
        return failure instanceof org.apache.kafka.common.errors.ApiException;
    }
}
