import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.CompletionStage;
import kafka.security.authorizer.AclAuthorizer;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/** Reads a set of rules with requests in each line and prints what Kafka's AclAuthorizer decides. */
public class Authorize {
    public static void main(String[] args) {
        try {
            answerAll(new File(args[0]));
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
        // Threads of the server would not let the process end.
        System.exit(0);
    }

    private static void answerAll(File folder) throws Exception {
        System.setProperty("zookeeper.forceSync", "no");
        NIOServerCnxnFactory factory = new NIOServerCnxnFactory();
        factory.configure(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 100);
        factory.startup(new ZooKeeperServer(new File(folder, "snapshots"), new File(folder, "log"), 2000));
        String address = "127.0.0.1:" + factory.getLocalPort();
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        ZooKeeper znodes = new ZooKeeper(address, 30000, event -> { });
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.println(mapper.writeValueAsString(answer(mapper.readTree(line), address, znodes)));
        }
        out.flush();
    }

    private static Map<String, Object> answer(JsonNode given, String address, ZooKeeper znodes) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("zookeeper.connect", address);
        put(settings, "super.users", given.get("super_users").asText());
        put(settings, "allow.everyone.if.no.acl.found", given.get("allows").asText());
        AclAuthorizer authorizer = new AclAuthorizer();
        authorizer.configure(settings);
        try {
            List<AclBinding> rules = new ArrayList<>();
            given.get("rules").forEach(rule -> rules.add(binding(rule)));
            for (CompletionStage<AclCreateResult> created : authorizer.createAcls(new Client("User:admin", "127.0.0.1"), rules)) {
                Optional<?> failure = created.toCompletableFuture().get().exception();
                if (failure.isPresent()) throw (Exception) failure.get();
            }
            Map<String, Object> result = new LinkedHashMap<>();
            result.put("znodes", texts(znodes));
            StringBuilder digits = new StringBuilder();
            given.get("requests").forEach(request -> digits.append(decision(authorizer, request)));
            result.put("decisions", digits.toString());
            for (CompletionStage<AclDeleteResult> deleted : authorizer.deleteAcls(
                    new Client("User:admin", "127.0.0.1"), Collections.singletonList(AclBindingFilter.ANY))) {
                deleted.toCompletableFuture().get();
            }
            return result;
        } finally {
            authorizer.close();
        }
    }

    private static void put(Map<String, Object> settings, String key, String value) {
        if (!value.isEmpty()) settings.put(key, value);
    }

    private static AclBinding binding(JsonNode rule) {
        return new AclBinding(
            new ResourcePattern(ResourceType.valueOf(rule.get(0).asText()), rule.get(1).asText(),
                PatternType.valueOf(rule.get(2).asText())),
            new AccessControlEntry(rule.get(3).asText(), rule.get(4).asText(),
                AclOperation.valueOf(rule.get(5).asText()), AclPermissionType.valueOf(rule.get(6).asText())));
    }

    private static String decision(AclAuthorizer authorizer, JsonNode request) {
        Client client = new Client(request.get(0).asText(), request.get(2).asText());
        AclOperation operation = AclOperation.valueOf(request.get(3).asText());
        ResourceType type = ResourceType.valueOf(request.get(4).asText());
        AuthorizationResult result;
        if (request.get(5).isNull()) {
            result = authorizer.authorizeByResourceType(client, operation, type);
        } else {
            ResourcePattern resource = new ResourcePattern(type, request.get(5).asText(), PatternType.LITERAL);
            result = authorizer.authorize(client,
                Collections.singletonList(new Action(operation, resource, 1, true, true))).get(0);
        }
        return result == AuthorizationResult.ALLOWED ? "1" : "0";
    }

    /** The nodes with rules, by path. */
    private static Map<String, String> texts(ZooKeeper znodes) throws Exception {
        Map<String, String> texts = new TreeMap<>();
        for (String root : new String[] {"/kafka-acl", "/kafka-acl-extended/prefixed"}) {
            for (String type : znodes.getChildren(root, false)) {
                for (String name : znodes.getChildren(root + "/" + type, false)) {
                    String path = root + "/" + type + "/" + name;
                    texts.put(path, new String(znodes.getData(path, false, null), StandardCharsets.UTF_8));
                }
            }
        }
        return texts;
    }

    private static class Client implements AuthorizableRequestContext {
        private final KafkaPrincipal principal;
        private final InetAddress address;

        Client(String principal, String address) {
            this.principal = SecurityUtils.parseKafkaPrincipal(principal);
            try {
                this.address = InetAddress.getByName(address);
            } catch (java.net.UnknownHostException impossible) {
                throw new IllegalArgumentException(impossible);
            }
        }

        @Override public String listenerName() { return "PLAINTEXT"; }
        @Override public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        @Override public KafkaPrincipal principal() { return principal; }
        @Override public InetAddress clientAddress() { return address; }
        @Override public int requestType() { return 0; }
        @Override public int requestVersion() { return 0; }
        @Override public String clientId() { return "client"; }
        @Override public int correlationId() { return 0; }
    }
}
