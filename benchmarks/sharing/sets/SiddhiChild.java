import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Runs an application over trades in batches, and prints what its last line of output says:
 * seconds to deploy, events, seconds of the sending thread in the best round, rows.
 *
 * Arguments: the file of the application, the file of events (time in ms, symbol, x: 8 bytes each),
 * events of a batch, batches of a round, and the seconds after which no more rounds begin.
 */
public class SiddhiChild {
    static long rows = 0;

    public static void main(String[] arguments) throws Exception {
        String text = Files.readString(Path.of(arguments[0]));
        Event[][] batches = batches(Path.of(arguments[1]), Integer.parseInt(arguments[2]));
        int ofRound = Integer.parseInt(arguments[3]);
        double enough = Double.parseDouble(arguments[4]);
        long began = System.nanoTime();
        SiddhiManager manager = new SiddhiManager();
        SiddhiAppRuntime runtime = manager.createSiddhiAppRuntime(text);
        runtime.addCallback("found", new StreamCallback() {
            @Override
            public void receive(Event[] events) {
                rows += events.length;
            }
        });
        runtime.start();
        double deployed = (System.nanoTime() - began) / 1e9;
        InputHandler handler = runtime.getInputHandler("trades");
        var threads = ManagementFactory.getThreadMXBean();
        double best = Double.POSITIVE_INFINITY, spent = 0;
        int sent = 0;
        while (sent + ofRound <= batches.length && spent < enough) {
            long before = threads.getCurrentThreadCpuTime();
            for (int k = sent; k < sent + ofRound; k++) {
                handler.send(batches[k]);
            }
            double seconds = (threads.getCurrentThreadCpuTime() - before) / 1e9;
            sent += ofRound;
            spent += seconds;
            best = Math.min(best, seconds);
        }
        int events = sent * batches[0].length;
        System.out.println(deployed + " " + events + " " + best + " " + rows);
        System.out.flush();
        // Threads of its own would keep it alive.
        Runtime.getRuntime().halt(0);
    }

    static Event[][] batches(Path path, int size) throws Exception {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(path)).order(ByteOrder.LITTLE_ENDIAN);
        int count = bytes.remaining() / 24 / size;
        Event[][] found = new Event[count][size];
        for (int k = 0; k < count; k++) {
            for (int place = 0; place < size; place++) {
                long time = bytes.getLong();
                long symbol = bytes.getLong();
                double x = bytes.getDouble();
                found[k][place] = new Event(time, new Object[] {time, symbol, x});
            }
        }
        return found;
    }
}
