// MariaDB Connector/J: Clients OPTIONS, which are those of its URL.

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.BatchUpdateException;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

public class Clients {
    interface Body {
        void run(String g) throws SQLException;
    }

    static Connection db;

    static void scenario(String name, Body body) throws SQLException {
        try {
            body.run(name);
        } catch (SQLException e) {
            System.out.println(name + " error=" + e.getErrorCode());
            if (!db.getAutoCommit()) {
                db.rollback();
                db.setAutoCommit(true);
            }
        }
    }

    /** The generated keys, each a word of its own: a driver may or may not know those of rows 2 to n. */
    static String keys(Statement st) throws SQLException {
        List<String> keys = new ArrayList<>();
        try (ResultSet rs = st.getGeneratedKeys()) {
            while (rs.next()) keys.add("key=" + rs.getLong(1));
        }
        return keys.isEmpty() ? "key=none" : String.join(" ", keys);
    }

    static PreparedStatement prepare(String sql) throws SQLException {
        return db.prepareStatement(sql, Statement.RETURN_GENERATED_KEYS);
    }

    /** Inserts once and returns the keys. */
    static String insert(String sql, Object... values) throws SQLException {
        try (PreparedStatement st = prepare(sql)) {
            for (int i = 0; i < values.length; i++) st.setObject(i + 1, values[i]);
            int affected = st.executeUpdate();
            return keys(st) + " affected=" + affected;
        }
    }

    static void rows(String g) throws SQLException {
        try (PreparedStatement st = db.prepareStatement("SELECT id, n, s, u FROM orders WHERE g=? ORDER BY id")) {
            st.setString(1, g);
            try (ResultSet rs = st.executeQuery()) {
                while (rs.next()) {
                    System.out.println(g + " row=" + rs.getLong(1) + "/" + rs.getString(2) + "/" + rs.getString(3) + "/" + rs.getString(4));
                }
            }
        }
    }

    static long last() throws SQLException {
        try (Statement st = db.createStatement(); ResultSet rs = st.executeQuery("SELECT LAST_INSERT_ID()")) {
            rs.next();
            return rs.getLong(1);
        }
    }

    static void print(String g, Object text) {
        System.out.println(g + " " + text);
    }

    static void single(String g) throws SQLException {
        print(g, insert("INSERT INTO orders (g, n, s) VALUES (?, ?, ?)", g, 1, "it's \\ ü") + " last=" + last());
        try (Statement st = db.createStatement()) {
            int affected = st.executeUpdate("INSERT INTO orders (g, n) VALUES ('" + g + "', 2)", Statement.RETURN_GENERATED_KEYS);
            print(g, keys(st) + " affected=" + affected);
            affected = st.executeUpdate("INSERT INTO orders (g, n) VALUES ('" + g + "', 3)", new String[] {"id"});
            print(g, keys(st) + " affected=" + affected);
        }
        rows(g);
    }

    static void values(String g) throws SQLException {
        print(g, insert("INSERT INTO orders (g, n) VALUES (?, ?), (?, ?), (?, ?)", g, 1, g, null, g, 3));
        rows(g);
    }

    static void repeated(String g) throws SQLException {
        try (PreparedStatement st = prepare("INSERT INTO orders (g, n, s) VALUES (?, ?, ?)")) {
            Object[][] all = {{1, "a"}, {null, "b"}, {3, null}, {null, null}, {"5", 6L}, {7.0, "x".repeat(50)}};
            for (Object[] row : all) {
                st.setString(1, g);
                if (row[0] == null) st.setNull(2, Types.INTEGER);
                else st.setObject(2, row[0]);
                st.setObject(3, row[1]);
                int affected = st.executeUpdate();
                print(g, keys(st) + " affected=" + affected);
            }
        }
        rows(g);
    }

    static void batch(String g) throws SQLException {
        try (PreparedStatement st = prepare("INSERT INTO orders (g, n, s) VALUES (?, ?, ?)")) {
            Object[][] all = {{1, "a"}, {null, "b"}, {3, null}, {null, null}};
            for (int i = 0; i < 2; i++) {
                for (Object[] row : all) {
                    st.setString(1, g);
                    st.setObject(2, row[0]);
                    st.setObject(3, row[1]);
                    st.addBatch();
                }
                int[] counts = st.executeBatch();
                print(g, keys(st) + " counts=" + Arrays.toString(counts).replace(" ", ""));
            }
        }
        rows(g);
    }

    /** A driver may use another way when nobody asks for the keys, MariaDB's bulk executions for one. */
    static void batchWithoutKeys(String g) throws SQLException {
        Object[][][] all = {{{null, 1, "a"}, {null, null, "b"}, {null, 3, null}}, {{45L, 4, null}, {null, 5, "e"}, {0L, null, null}}};
        for (Object[][] batch : all) {
            try (PreparedStatement st = db.prepareStatement("INSERT INTO orders (id, g, n, s) VALUES (?, ?, ?, ?)")) {
                for (Object[] row : batch) {
                    st.setObject(1, row[0]);
                    st.setString(2, g);
                    st.setObject(3, row[1]);
                    st.setObject(4, row[2]);
                    st.addBatch();
                }
                print(g, "counts=" + Arrays.toString(st.executeBatch()).replace(" ", ""));
            }
            rows(g);
        }
        print(g, insert("INSERT INTO items (order_id, s) VALUES (1, ?)", g));
    }

    /** More rows than fit into one packet of some drivers. */
    static void batchOfMany(String g) throws SQLException {
        try (PreparedStatement st = db.prepareStatement("INSERT INTO orders (g, n) VALUES (?, ?)")) {
            for (int n = 0; n < 3000; n++) {
                st.setString(1, g);
                st.setInt(2, n);
                st.addBatch();
            }
            print(g, "counts=" + st.executeBatch().length + " last=" + (last() > 0));
        }
        // Ids follow the order of the rows.
        try (Statement st = db.createStatement(); ResultSet rs = st.executeQuery("SELECT COUNT(*), COUNT(DISTINCT id), SUM(n) FROM orders WHERE g='" + g + "'")) {
            rs.next();
            print(g, "rows=" + rs.getInt(1) + " ids=" + rs.getInt(2) + " sum=" + rs.getInt(3));
        }
        try (Statement st = db.createStatement(); ResultSet rs = st.executeQuery("SELECT n FROM orders WHERE g='" + g + "' ORDER BY id")) {
            int wrong = 0;
            for (int n = 0; rs.next(); n++) if (rs.getInt(1) != n) wrong++;
            print(g, "out of order=" + wrong);
        }
        db.createStatement().executeUpdate("DELETE FROM orders WHERE g='" + g + "'");
    }

    static void batchOfTypes(String g) throws SQLException {
        try (PreparedStatement st = prepare("INSERT INTO orders (g, n) VALUES (?, ?)")) {
            for (Object n : new Object[] {1, "2", null, 4L}) {
                st.setString(1, g);
                st.setObject(2, n);
                st.addBatch();
            }
            st.executeBatch();
            print(g, keys(st));
        }
        rows(g);
    }

    static void batchOfIds(String g) throws SQLException {
        try (PreparedStatement st = prepare("INSERT INTO orders (id, g) VALUES (?, ?)")) {
            for (Long id : new Long[] {null, 41L, 0L, null}) {
                st.setObject(1, id);
                st.setString(2, g);
                st.addBatch();
            }
            st.executeBatch();
            print(g, keys(st));
        }
        rows(g);
    }

    static void batchOfTexts(String g) throws SQLException {
        try (Statement st = db.createStatement()) {
            for (int n = 1; n <= 3; n++) st.addBatch("INSERT INTO orders (g, n) VALUES ('" + g + "', " + n + ")");
            st.addBatch("INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), '" + g + "')");
            int[] counts = st.executeBatch();
            print(g, keys(st) + " counts=" + Arrays.toString(counts).replace(" ", ""));
        }
        rows(g);
    }

    static void batchThatFails(String g) throws SQLException {
        try (PreparedStatement st = prepare("INSERT INTO orders (g, u) VALUES (?, ?)")) {
            db.setAutoCommit(false);
            for (String u : new String[] {"b1", "b1", "b2"}) {
                st.setString(1, g);
                st.setString(2, u);
                st.addBatch();
            }
            st.executeBatch();
        } catch (BatchUpdateException e) {
            print(g, (e.getErrorCode() == 1062 ? "failed=" : "error=") + e.getErrorCode());
        }
        db.rollback();
        db.setAutoCommit(true);
        rows(g);
    }

    static void batchUpsert(String g) throws SQLException {
        try (PreparedStatement st = prepare("INSERT INTO orders (g, n, u) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE n=VALUES(n)")) {
            for (int n = 1; n <= 3; n++) {
                st.setString(1, g);
                st.setInt(2, n);
                st.setString(3, "bu" + n);
                st.addBatch();
            }
            st.executeBatch();
            print(g, keys(st));
        }
        rows(g);
    }

    static void commit(String g) throws SQLException {
        db.setAutoCommit(false);
        String order = insert("INSERT INTO orders (g) VALUES (?)", g);
        String item = insert("INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)", g);
        db.commit();
        db.setAutoCommit(true);
        print(g, "order " + order + " item " + item);
    }

    static void rollback(String g) throws SQLException {
        db.setAutoCommit(false);
        print(g, insert("INSERT INTO orders (g) VALUES (?)", g));
        db.rollback();
        db.setAutoCommit(true);
        rows(g);
    }

    static void upsert(String g) throws SQLException {
        for (int n : new int[] {1, 2, 2}) {
            print(g, insert("INSERT INTO orders (g, n, u) VALUES (?, ?, 'up') ON DUPLICATE KEY UPDATE n=VALUES(n)", g, n) + " last=" + last());
        }
        for (int i = 0; i < 2; i++) print(g, insert("INSERT IGNORE INTO orders (g, u) VALUES (?, 'ig')", g));
        rows(g);
    }

    static void failed(String g) throws SQLException {
        String parent = insert("INSERT INTO orders (g, u) VALUES (?, 'fail')", g);
        try {
            insert("INSERT INTO orders (g, u) VALUES (?, 'fail')", g);
        } catch (SQLException e) {
            print(g, (e.getErrorCode() == 1062 ? "failed=" : "error=") + e.getErrorCode() + " state=" + e.getSQLState());
        }
        print(g, parent + " child " + insert("INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)", g));
    }

    static void explicit(String g) throws SQLException {
        print(g, insert("INSERT INTO orders (id, g) VALUES (?, ?)", 42L, g) + " last=" + last());
    }

    static void zero(String g) throws SQLException {
        for (Object id : new Object[] {null, 0L, "0", 0}) print(g, insert("INSERT INTO orders (id, g) VALUES (?, ?)", id, g));
        rows(g);
    }

    static void plain(String g) throws SQLException {
        print(g, insert("INSERT INTO plain (s) VALUES (?), (?)", g, g));
    }

    static void returning(String g) throws SQLException {
        try (PreparedStatement st = db.prepareStatement("INSERT INTO orders (g, n) VALUES (?, ?), (?, ?) RETURNING id, n")) {
            st.setString(1, g);
            st.setInt(2, 1);
            st.setString(3, g);
            st.setInt(4, 2);
            try (ResultSet rs = st.executeQuery()) {
                while (rs.next()) print(g, "row=" + rs.getLong(1) + "/" + rs.getInt(2));
            }
        }
    }

    public static void main(String[] args) throws Exception {
        String url = String.format("jdbc:mariadb://%s:%s/%s?allowPublicKeyRetrieval=true%s", System.getenv("CLIENT_HOST"),
            System.getenv("CLIENT_PORT"), System.getenv("CLIENT_DATABASE"), args.length > 0 ? "&" + args[0] : "");
        db = DriverManager.getConnection(url, System.getenv("CLIENT_USER"), System.getenv("CLIENT_PASSWORD"));
        scenario("single", Clients::single);
        scenario("values", Clients::values);
        scenario("repeated", Clients::repeated);
        scenario("batch", Clients::batch);
        scenario("batch_without_keys", Clients::batchWithoutKeys);
        scenario("batch_of_many", Clients::batchOfMany);
        scenario("batch_of_types", Clients::batchOfTypes);
        scenario("batch_of_ids", Clients::batchOfIds);
        scenario("batch_of_texts", Clients::batchOfTexts);
        scenario("batch_that_fails", Clients::batchThatFails);
        scenario("upsert_batch", Clients::batchUpsert);
        scenario("commit", Clients::commit);
        scenario("rollback", Clients::rollback);
        scenario("upsert", Clients::upsert);
        scenario("failed", Clients::failed);
        scenario("explicit", Clients::explicit);
        scenario("zero", Clients::zero);
        scenario("plain", Clients::plain);
        if (db.getMetaData().getDatabaseProductName().contains("MariaDB")) scenario("returning", Clients::returning);
        db.close();
    }
}
