// MariaDB Connector/J with its own pool, of one connection.

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import org.mariadb.jdbc.MariaDbPoolDataSource;

public class Lost {
    static String url(String port) {
        return String.format("jdbc:mariadb://%s:%s/%s?user=%s&password=%s&allowPublicKeyRetrieval=true&maxPoolSize=1", System.getenv("CLIENT_HOST"),
            System.getenv(port), System.getenv("CLIENT_DATABASE"), System.getenv("CLIENT_USER"), System.getenv("CLIENT_PASSWORD"));
    }

    static void insert(String g, Connection open) throws SQLException {
        try (Connection db = open; Statement st = db.createStatement()) {
            st.executeUpdate("INSERT INTO orders (g) VALUES ('" + g + "')", Statement.RETURN_GENERATED_KEYS);
            try (ResultSet rs = st.getGeneratedKeys()) {
                rs.next();
                System.out.println(g + " key=" + rs.getLong(1));
            }
        }
    }

    static void show(String what, SQLException e) {
        for (Throwable at = e; at != null; at = at.getCause()) {
            if (at instanceof SQLException s) System.out.println(what + " " + s.getErrorCode() + " " + s.getSQLState() + " " + s.getMessage());
        }
    }

    public static void main(String[] args) throws SQLException {
        try (MariaDbPoolDataSource pool = new MariaDbPoolDataSource(url("CLIENT_PORT"))) {
            try {
                insert("lose me", pool.getConnection());
            } catch (SQLException e) {
                show("lost", e);
            }
            insert("again", pool.getConnection());
        }
        try {
            DriverManager.getConnection(url("CLIENT_PORT_DOWN"));
        } catch (SQLException e) {
            show("connect", e);
        }
    }
}
