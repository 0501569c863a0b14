import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools one after the other in one process: most of what a tool takes is
 * the start of its virtual machine.
 *
 * Request on stdin: count of words (int), each as bytes after their length: the class, then its
 * arguments; then the bytes of the tool's stdin after their length. Response on stdout: exit status,
 * then stdout and stderr, each after its length. Each tool has static fields of its own: the jars of
 * tools are loaded again for each, all others once.
 */
public final class ToolServer {
    /** Longer than any tool waits by itself; what has not ended by then is left alone. */
    private static final int LIMIT_S = 150;

    private static final int TIMED_OUT = 124;
    private static final OutputSwitch OUT = new OutputSwitch();
    private static final OutputSwitch ERR = new OutputSwitch();

    public static void main(String[] arguments) throws Exception {
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream responses = new DataOutputStream(System.out);
        System.setOut(new PrintStream(OUT, true, "UTF-8"));
        System.setErr(new PrintStream(ERR, true, "UTF-8"));
        while (true) {
            int count;
            try {
                count = requests.readInt();
            } catch (EOFException end) {
                Runtime.getRuntime().halt(0);
                return;
            }
            List<String> words = new ArrayList<>();
            for (int word = 0; word < count; word++) {
                words.add(new String(requests.readNBytes(requests.readInt()), "UTF-8"));
            }
            System.setIn(new ByteArrayInputStream(requests.readNBytes(requests.readInt())));
            OUT.begin();
            ERR.begin();
            int status = run(words);
            System.out.flush();
            System.err.flush();
            responses.writeInt(status);
            OUT.send(responses);
            ERR.send(responses);
            responses.flush();
        }
    }

    /** Run a tool until it exits or returns, then its shutdown hooks; return its exit status. */
    private static int run(List<String> words) throws Exception {
        CompletableFuture<Integer> status = new CompletableFuture<>();
        Map<Thread, Thread> hooks = shutdownHooks();
        Set<Thread> before = new HashSet<>(hooks.keySet());
        Exit.Procedure exit = (code, message) -> {
            status.complete(code);
            // As after System.exit: the thread that asked for it does nothing more.
            while (true) {
                LockSupport.park();
            }
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        try (ToolLoader loader = new ToolLoader()) {
            Thread thread = new Thread(() -> status.complete(runMain(words, loader)));
            thread.setDaemon(true);
            thread.setContextClassLoader(loader);
            thread.start();
            try {
                status.get(LIMIT_S, TimeUnit.SECONDS);
            } catch (TimeoutException late) {
                status.complete(TIMED_OUT);
            }
            Set<Thread> added = new HashSet<>(hooks.keySet());
            added.removeAll(before);
            for (Thread hook : added) {
                hooks.remove(hook);
                hook.run();
            }
        }
        return status.get();
    }

    /** Return what the virtual machine runs at its end; needs --add-opens java.base/java.lang. */
    @SuppressWarnings("unchecked")
    private static Map<Thread, Thread> shutdownHooks() throws ReflectiveOperationException {
        Field hooks = Class.forName("java.lang.ApplicationShutdownHooks").getDeclaredField("hooks");
        hooks.setAccessible(true);
        return (Map<Thread, Thread>) hooks.get(null);
    }

    private static int runMain(List<String> words, ToolLoader loader) {
        try {
            String[] arguments = words.subList(1, words.size()).toArray(new String[0]);
            Class<?> tool = Class.forName(words.get(0), true, loader);
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException failed) {
            failed.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException absent) {
            absent.printStackTrace();
            return 1;
        }
    }

    /** Loads the classes of tools itself, and has all others from the process. */
    private static final class ToolLoader extends URLClassLoader {
        ToolLoader() throws IOException {
            super(jars(), ToolServer.class.getClassLoader());
        }

        private static URL[] jars() throws IOException {
            List<URL> found = new ArrayList<>();
            for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
                String name = new File(path).getName();
                if (name.startsWith("kafka-tools-") && !name.startsWith("kafka-tools-api") || name.startsWith("kafka_")) {
                    found.add(new File(path).toURI().toURL());
                }
            }
            return found.toArray(new URL[0]);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                boolean mayBeTools = name.startsWith("kafka.") || name.startsWith("org.apache.kafka.tools.");
                if (loaded == null && mayBeTools) {
                    try {
                        loaded = findClass(name);
                    } catch (ClassNotFoundException absent) {
                        loaded = null;
                    }
                }
                return loaded == null ? super.loadClass(name, resolve) : loaded;
            }
        }
    }

    /** A stream that all printers keep, and whose bytes belong to the tool that runs. */
    private static final class OutputSwitch extends OutputStream {
        private ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        synchronized void begin() {
            bytes = new ByteArrayOutputStream();
        }

        synchronized void send(DataOutputStream target) throws IOException {
            target.writeInt(bytes.size());
            bytes.writeTo(target);
        }

        @Override
        public synchronized void write(int value) {
            bytes.write(value);
        }

        @Override
        public synchronized void write(byte[] values, int offset, int length) {
            bytes.write(values, offset, length);
        }
    }
}
