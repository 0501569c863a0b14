import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
// The package of the record classes differs by release: make.py fills it in.
import @RECORDS@.MemoryRecords;
import @RECORDS@.Record;
import @RECORDS@.SimpleRecord;

/**
 * Answers questions about bytes with Apache Kafka's own classes, one line each.
 *
 *   M message version bytes                  reads, prints as JSON, writes again
 *   D message version bytes                  reads, prints as JSON
 *   R parser-class key value offset          what a decoder of the dump tool prints
 *
 * Bytes are hex, "=" for none, "-" for null. Answers: OK and its parts, or ERR, class, message
 * ("~" for no message), separated by tabs; text is escaped.
 */
public class Answers {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.", "org.apache.kafka.common.metadata.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.server.log.remote.metadata.storage.generated.",
        "org.apache.kafka.raft.generated.", "org.apache.kafka.storage.internals.log.generated.",
        "org.apache.kafka.server.log.generated.", "org.apache.kafka.storage.generated.",
    };
    private static final Map<String, Class<?>> CLASSES = new HashMap<>();
    private static final Map<String, Object> PARSERS = new HashMap<>();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out =
            new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, "UTF-8");
        String line;
        while ((line = in.readLine()) != null) {
            String[] words = line.split(" ");
            try {
                out.println(words[0].equals("R") ? record(words) : message(words));
            } catch (Throwable t) {
                out.println(failure(t));
            }
        }
        out.flush();
    }

    private static String message(String[] words) throws Exception {
        Class<?> found = find(words[1]);
        short version = Short.parseShort(words[2]);
        ByteBuffer bytes = ByteBuffer.wrap(unhex(words[3]));
        Message message = (Message) found.getConstructor().newInstance();
        message.read(new ByteBufferAccessor(bytes), version);
        Class<?> converter = Class.forName(found.getName() + "JsonConverter");
        Object json = converter.getMethod("write", found, short.class).invoke(null, message, version);
        String read = "OK\t" + escape(json.toString()) + "\t" + bytes.position();
        return words[0].equals("M") ? read + "\t" + rewritten(message, version) : read;
    }

    private static String rewritten(Message message, short version) {
        try {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer out = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(out), cache, version);
            return hex(out.array());
        } catch (RuntimeException e) {
            return "ERR " + e;
        }
    }

    private static String record(String[] words) throws Exception {
        Object parser = parser(words[1]);
        Method parse = null;
        for (Method method : parser.getClass().getMethods())
            if (method.getName().equals("parse") && !method.isBridge()) parse = method;
        parse.setAccessible(true);
        Record record = MemoryRecords.withRecords(Long.parseLong(words[4]), Compression.NONE,
            new SimpleRecord(0L, unhex(words[2]), unhex(words[3]))).records().iterator().next();
        Object found = parse.invoke(parser, record);
        boolean scala = found.getClass().getName().startsWith("scala.");
        return "OK\t" + optional(part(found, scala ? "_1" : "key")) + "\t"
            + optional(part(found, scala ? "_2" : "value"));
    }

    private static Object part(Object found, String name) throws Exception {
        Method method = found.getClass().getMethod(name);
        method.setAccessible(true);
        return method.invoke(found);
    }

    private static String optional(Object value) throws Exception {
        Object got = null;
        if (value instanceof Optional)
            got = ((Optional<?>) value).orElse(null);
        else if (!(Boolean) value.getClass().getMethod("isEmpty").invoke(value))
            got = value.getClass().getMethod("get").invoke(value);
        return got == null ? "N" : "S" + escape(got.toString());
    }

    private static Object parser(String name) throws Exception {
        if (!PARSERS.containsKey(name)) {
            Constructor<?> constructor = Class.forName(name).getDeclaredConstructors()[0];
            constructor.setAccessible(true);
            PARSERS.put(name, constructor.newInstance());
        }
        return PARSERS.get(name);
    }

    private static Class<?> find(String name) throws ClassNotFoundException {
        if (CLASSES.containsKey(name)) return CLASSES.get(name);
        for (String prefix : PACKAGES)
            for (String suffix : new String[] {"Data", ""})
                try {
                    Class<?> found = Class.forName(prefix + name + suffix);
                    if (!Message.class.isAssignableFrom(found)) continue;
                    CLASSES.put(name, found);
                    return found;
                } catch (ClassNotFoundException e) {
                    // the next package may have it
                }
        throw new ClassNotFoundException(name);
    }

    private static String failure(Throwable t) {
        Throwable cause = t instanceof InvocationTargetException ? t.getCause() : t;
        String message = cause.getMessage() == null ? "~" : escape(cause.getMessage());
        return "ERR\t" + cause.getClass().getName() + "\t" + message;
    }

    private static String escape(String s) {
        return s.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
            .replace("\r", "\\r");
    }

    private static byte[] unhex(String text) {
        if (text.equals("-")) return null;
        byte[] out = new byte[text.equals("=") ? 0 : text.length() / 2];
        for (int i = 0; i < out.length; i++)
            out[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
        return out;
    }

    private static String hex(byte[] bytes) {
        StringBuilder out = new StringBuilder();
        for (byte b : bytes) out.append(String.format("%02x", b));
        return out.length() == 0 ? "=" : out.toString();
    }
}
