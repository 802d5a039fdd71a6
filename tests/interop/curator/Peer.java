import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.retry.RetryNTimes;

/**
 * Takes part in Apache Curator's recipes, as it is told on standard input.
 *
 * <p>A line is a number, a recipe, an operation and its arguments, as in {@code 1 lock acquire
 * /path}. The answer is one line on standard output, {@code 1 ok ...} or {@code 1 error ...}; the
 * first line is {@code ready}. Commands are carried out one after another, so one that waits in a
 * line keeps those behind it waiting. The end of standard input ends the session.
 */
final class Peer {
    private static final int SESSION_TIMEOUT_MS = 4_000;
    private static final int CONNECT_TIMEOUT_MS = 30_000;

    /** What a participant does in one of Curator's recipes. */
    private interface Recipe {
        /** Carries an operation out; answers what there is to say of it. */
        String call(String operation, List<String> arguments) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        RetryNTimes retry = new RetryNTimes(10, 100);
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(
                arguments[0], SESSION_TIMEOUT_MS, CONNECT_TIMEOUT_MS, retry)) {
            client.start();
            if (!client.blockUntilConnected(CONNECT_TIMEOUT_MS, TimeUnit.MILLISECONDS)) {
                throw new IllegalStateException("no session with " + arguments[0]);
            }
            serve(Map.of(
                    "lock", new Lock(client),
                    "multi-lock", new MultiLock(client),
                    "read-write-lock", new ReadWriteLock(client),
                    "semaphore", new Semaphore(client),
                    "shared-count", new Count(client),
                    "election", new Election(client),
                    "counter", new Counter(client),
                    "barrier", new Barrier(client),
                    "queue", new Queue(client),
                    "bench", new Bench(client)));
        }
    }

    private static void serve(Map<String, Recipe> recipes) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        say("ready");
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            List<String> words = List.of(line.split(" "));
            String number = words.get(0);
            try {
                Recipe recipe = recipes.get(words.get(1));
                if (recipe == null) {
                    throw new IllegalArgumentException("no recipe " + words.get(1));
                }
                String answer = recipe.call(words.get(2), words.subList(3, words.size()));
                say((number + " ok " + answer).strip());
            } catch (Exception error) {
                error.printStackTrace();
                say(number + " error " + error.toString().replace('\n', ' '));
            }
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static IllegalArgumentException unknown(String operation) {
        return new IllegalArgumentException("no operation " + operation);
    }

    /**
     * {@code acquire <path> <naming>}, of which Curator has one, and {@code release}; {@code
     * acquire-revocable <path>}, and {@code await-request}, which answers when somebody asks for the
     * lock; and {@code revoke <path of a contender>}.
     */
    private static final class Lock implements Recipe {
        private final CuratorFramework client;
        private InterProcessMutex mutex;
        private CountDownLatch requested;

        Lock(CuratorFramework client) {
            this.client = client;
        }

        @Override
        public String call(String operation, List<String> arguments) throws Exception {
            switch (operation) {
                case "acquire":
                    if (!arguments.get(1).equals("curator")) {
                        throw new IllegalArgumentException("no naming " + arguments.get(1));
                    }
                    mutex = new InterProcessMutex(client, arguments.get(0));
                    mutex.acquire();
                    return "";
                case "acquire-revocable":
                    CountDownLatch heard = new CountDownLatch(1);
                    requested = heard;
                    mutex = new InterProcessMutex(client, arguments.get(0));
                    mutex.makeRevocable(asked -> heard.countDown());
                    mutex.acquire();
                    return "";
                case "await-request":
                    requested.await();
                    return "";
                case "revoke":
                    Revoker.attemptRevoke(client, arguments.get(0));
                    return "";
                case "release":
                    mutex.release();
                    return "";
                default:
                    throw unknown(operation);
            }
        }
    }

    /**
     * {@code acquire <path>...}, {@code try <milliseconds> <path>...}, which answers {@code none} if it
     * does not have all of them by then, and {@code release}.
     */
    private static final class MultiLock implements Recipe {
        private final CuratorFramework client;
        private InterProcessMultiLock held;

        MultiLock(CuratorFramework client) {
            this.client = client;
        }

        @Override
        public String call(String operation, List<String> arguments) throws Exception {
            switch (operation) {
                case "acquire":
                    held = new InterProcessMultiLock(client, arguments);
                    held.acquire();
                    return "";
                case "try":
                    held = new InterProcessMultiLock(
                            client, arguments.subList(1, arguments.size()));
                    boolean hasAll =
                            held.acquire(Long.parseLong(arguments.get(0)), TimeUnit.MILLISECONDS);
                    return hasAll ? "" : "none";
                case "release":
                    held.release();
                    return "";
                default:
                    throw unknown(operation);
            }
        }
    }

    /** {@code acquire-read <path>}, {@code acquire-write <path>} and {@code release}. */
    private static final class ReadWriteLock implements Recipe {
        private final CuratorFramework client;
        private InterProcessMutex held;

        ReadWriteLock(CuratorFramework client) {
            this.client = client;
        }

        @Override
        public String call(String operation, List<String> arguments) throws Exception {
            switch (operation) {
                case "acquire-read":
                    held = new InterProcessReadWriteLock(client, arguments.get(0)).readLock();
                    held.acquire();
                    return "";
                case "acquire-write":
                    held = new InterProcessReadWriteLock(client, arguments.get(0)).writeLock();
                    held.acquire();
                    return "";
                case "release":
                    held.release();
                    return "";
                default:
                    throw unknown(operation);
            }
        }
    }

    /**
     * {@code acquire <path> <permits> <wanted>}, {@code try <path> <permits> <wanted> <milliseconds>},
     * which answers {@code none} if it has none by then, {@code acquire-counted <path> <wanted>} with the
     * number of permits that is stored in the directory of the leases, and {@code release}.
     */
    private static final class Semaphore implements Recipe {
        private final CuratorFramework client;
        private InterProcessSemaphoreV2 semaphore;
        private Collection<Lease> held;

        Semaphore(CuratorFramework client) {
            this.client = client;
        }

        @Override
        public String call(String operation, List<String> arguments) throws Exception {
            switch (operation) {
                case "acquire":
                    semaphore = new InterProcessSemaphoreV2(
                            client, arguments.get(0), Integer.parseInt(arguments.get(1)));
                    held = semaphore.acquire(Integer.parseInt(arguments.get(2)));
                    return "";
                case "try":
                    semaphore = new InterProcessSemaphoreV2(
                            client, arguments.get(0), Integer.parseInt(arguments.get(1)));
                    held = semaphore.acquire(
                            Integer.parseInt(arguments.get(2)),
                            Long.parseLong(arguments.get(3)),
                            TimeUnit.MILLISECONDS);
                    return held == null ? "none" : "";
                case "acquire-counted":
                    // The seed is stored only where there is no such znode.
                    SharedCount count = new SharedCount(client, arguments.get(0) + "/leases", 1);
                    count.start();
                    semaphore = new InterProcessSemaphoreV2(client, arguments.get(0), count);
                    held = semaphore.acquire(Integer.parseInt(arguments.get(1)));
                    return "";
                case "release":
                    semaphore.returnAll(held);
                    return "";
                default:
                    throw unknown(operation);
            }
        }
    }

    /**
     * {@code open <path>}, which answers the number; {@code await}, which answers the number that a
     * listener is told; {@code set <number>}; and {@code try-set <number>} at the version that was
     * opened, which answers {@code set} or {@code refused}.
     */
    private static final class Count implements Recipe {
        private final CuratorFramework client;
        private final BlockingQueue<Integer> told = new LinkedBlockingQueue<>();
        private SharedCount count;
        private VersionedValue<Integer> opened;

        Count(CuratorFramework client) {
            this.client = client;
        }

        @Override
        public String call(String operation, List<String> arguments) throws Exception {
            switch (operation) {
                case "open":
                    if (count != null) {
                        count.close();
                    }
                    told.clear();
                    // The seed is stored only where there is no such znode.
                    count = new SharedCount(client, arguments.get(0), 1);
                    count.addListener(listener());
                    count.start();
                    opened = count.getVersionedValue();
                    return opened.getValue().toString();
                case "await":
                    return told.take().toString();
                case "set":
                    count.setCount(Integer.parseInt(arguments.get(0)));
                    return "";
                case "try-set":
                    boolean isSet = count.trySetCount(opened, Integer.parseInt(arguments.get(0)));
                    return isSet ? "set" : "refused";
                default:
                    throw unknown(operation);
            }
        }

        private SharedCountListener listener() {
            return new SharedCountListener() {
                @Override
                public void countHasChanged(SharedCountReader reader, int number) {
                    told.add(number);
                }

                @Override
                public void stateChanged(CuratorFramework framework, ConnectionState state) {
                    // The number is looked at, whatever becomes of the connection.
                }
            };
        }
    }

    /** {@code volunteer <path>}, which answers when it is elected, and {@code resign}. */
    private static final class Election implements Recipe {
        private final CuratorFramework client;
        private LeaderLatch latch;

        Election(CuratorFramework client) {
            this.client = client;
        }

        @Override
        public String call(String operation, List<String> arguments) throws Exception {
            switch (operation) {
                case "volunteer":
                    latch = new LeaderLatch(client, arguments.get(0));
                    latch.start();
                    latch.await();
                    return "";
                case "resign":
                    latch.close();
                    return "";
                default:
                    throw unknown(operation);
            }
        }
    }

    /**
     * {@code get <path>}, {@code add <path> <by> <times>}, which answers the last sum, and {@code
     * compare-and-set <path> <expected> <value>}.
     */
    private static final class Counter implements Recipe {
        private final CuratorFramework client;

        Counter(CuratorFramework client) {
            this.client = client;
        }

        @Override
        public String call(String operation, List<String> arguments) throws Exception {
            String path = arguments.get(0);
            DistributedAtomicLong counter =
                    new DistributedAtomicLong(client, path, new RetryForever(1));
            switch (operation) {
                case "get":
                    return succeeded(counter.get());
                case "add":
                    String sum = "";
                    for (int time = 0; time < Integer.parseInt(arguments.get(2)); time++) {
                        sum = succeeded(counter.add(Long.parseLong(arguments.get(1))));
                    }
                    return sum;
                case "compare-and-set":
                    AtomicValue<Long> outcome = counter.compareAndSet(
                            Long.parseLong(arguments.get(1)), Long.parseLong(arguments.get(2)));
                    return outcome.succeeded() ? "set" : "differs " + outcome.preValue();
                default:
                    throw unknown(operation);
            }
        }

        private static String succeeded(AtomicValue<Long> outcome) {
            if (!outcome.succeeded()) {
                throw new IllegalStateException("it did not succeed");
            }
            return outcome.postValue().toString();
        }
    }

    /** {@code raise <path>}, {@code wait <path>} and {@code lower <path>}. */
    private static final class Barrier implements Recipe {
        private final CuratorFramework client;

        Barrier(CuratorFramework client) {
            this.client = client;
        }

        @Override
        public String call(String operation, List<String> arguments) throws Exception {
            DistributedBarrier barrier = new DistributedBarrier(client, arguments.get(0));
            switch (operation) {
                case "raise":
                    barrier.setBarrier();
                    return "";
                case "wait":
                    barrier.waitOnBarrier();
                    return "";
                case "lower":
                    barrier.removeBarrier();
                    return "";
                default:
                    throw unknown(operation);
            }
        }
    }

    /** {@code put <path> <data>}, {@code take <path>}, and {@code poll <path>}, which does not wait. */
    private static final class Queue implements Recipe {
        private final CuratorFramework client;

        Queue(CuratorFramework client) {
            this.client = client;
        }

        @Override
        public String call(String operation, List<String> arguments) throws Exception {
            SimpleDistributedQueue queue = new SimpleDistributedQueue(client, arguments.get(0));
            switch (operation) {
                case "put":
                    queue.offer(arguments.get(1).getBytes(StandardCharsets.UTF_8));
                    return "";
                case "take":
                    return new String(queue.take(), StandardCharsets.UTF_8);
                case "poll":
                    byte[] data = queue.poll();
                    return data == null ? "" : new String(data, StandardCharsets.UTF_8);
                default:
                    throw unknown(operation);
            }
        }
    }

    /**
     * {@code double-barrier}, {@code semaphore}, {@code read-write-lock} and queues, each with {@code
     * <path> <members> <cycles>}: as many threads go through as many cycles; answers the seconds that
     * takes. A semaphore is told its permits as well, a read-write lock of how many cycles one writes,
     * and a queue how many items are put in and taken out in a cycle.
     */
    private static final class Bench implements Recipe {
        /** What is put into a queue. */
        private static final byte[] ITEM = ".".repeat(100).getBytes(StandardCharsets.UTF_8);

        /** What a member does, again and again. */
        private interface Cycle {
            void play(int member, int number) throws Exception;
        }

        private final CuratorFramework client;

        Bench(CuratorFramework client) {
            this.client = client;
        }

        @Override
        public String call(String operation, List<String> arguments) throws Exception {
            String path = arguments.get(0);
            int members = Integer.parseInt(arguments.get(1));
            int cycles = Integer.parseInt(arguments.get(2));
            switch (operation) {
                case "double-barrier":
                    return play(members, cycles, (member, number) -> {
                        DistributedDoubleBarrier barrier =
                                new DistributedDoubleBarrier(client, path + "/" + number, members);
                        barrier.enter();
                        barrier.leave();
                    });
                case "semaphore":
                    int permits = Integer.parseInt(arguments.get(3));
                    return play(members, cycles, (member, number) -> {
                        InterProcessSemaphoreV2 semaphore =
                                new InterProcessSemaphoreV2(client, path, permits);
                        semaphore.returnLease(semaphore.acquire());
                    });
                case "read-write-lock":
                    int writes = Integer.parseInt(arguments.get(3));
                    return play(members, cycles, (member, number) -> {
                        InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
                        boolean isWrite = (member + number) % writes == 0;
                        InterProcessMutex lock = isWrite ? both.writeLock() : both.readLock();
                        lock.acquire();
                        lock.release();
                    });
                case "queue":
                case "queue-in-batches":
                case "queue-of-eight":
                    int batch = Integer.parseInt(arguments.get(3));
                    boolean eachDoesBoth = !operation.equals("queue-of-eight");
                    return play(members, cycles, (member, number) -> {
                        SimpleDistributedQueue queue = new SimpleDistributedQueue(client, path);
                        boolean puts = eachDoesBoth || member % 2 == 0;
                        boolean takes = eachDoesBoth || member % 2 == 1;
                        for (int item = 0; puts && item < batch; item++) {
                            queue.offer(ITEM);
                        }
                        for (int item = 0; takes && item < batch; item++) {
                            queue.take();
                        }
                    });
                default:
                    throw unknown(operation);
            }
        }

        private static String play(int members, int cycles, Cycle cycle) throws Exception {
            ExecutorService threads = Executors.newFixedThreadPool(members);
            try {
                List<Callable<Void>> all = new ArrayList<>();
                for (int each = 0; each < members; each++) {
                    int member = each;
                    all.add(() -> {
                        for (int number = 0; number < cycles; number++) {
                            cycle.play(member, number);
                        }
                        return null;
                    });
                }
                long started = System.nanoTime();
                for (Future<Void> outcome : threads.invokeAll(all)) {
                    outcome.get();
                }
                return Double.toString((System.nanoTime() - started) / 1e9);
            } finally {
                threads.shutdown();
            }
        }
    }
}
