import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;

/** Runs a dump tool's main for each line of tab-separated arguments, many in one process. */
public class Dumps {
    public static void main(String[] arguments) throws Exception {
        Method tool = Class.forName(arguments[0]).getMethod("main", String[].class);
        BufferedReader calls = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        String call;
        while ((call = calls.readLine()) != null) {
            ByteArrayOutputStream shown = new ByteArrayOutputStream();
            PrintStream out = new PrintStream(shown, false, "UTF-8");
            System.setOut(out);
            System.setErr(new PrintStream(new ByteArrayOutputStream()));
            String failure = run(tool, call.split("\t"), out);
            out.flush();
            byte[] text = shown.toByteArray();
            answers.println((failure == null ? 0 : 1) + " " + text.length + " "
                + (failure == null ? "" : failure.replace('\n', ' ').replace('\r', ' ')));
            answers.write(text);
            answers.println();
            answers.flush();
        }
    }

    private static String run(Method tool, String[] arguments, PrintStream out) {
        try {
            // Scala's console keeps a stream of its own.
            scala.Console.withOut(out, new scala.runtime.AbstractFunction0<Object>() {
                public Object apply() {
                    try {
                        return tool.invoke(null, (Object) arguments);
                    } catch (InvocationTargetException error) {
                        throw new RuntimeException(error.getCause());
                    } catch (IllegalAccessException error) {
                        throw new RuntimeException(error);
                    }
                }
            });
            return null;
        } catch (RuntimeException error) {
            return String.valueOf(error.getCause() == null ? error : error.getCause());
        } catch (Error error) {
            return String.valueOf(error);
        }
    }
}
