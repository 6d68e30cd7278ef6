/* libmariadb: prepared statements through mysql_stmt_*, text through mysql_query. */
#include <mysql.h>
#include <errmsg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MYSQL *db;
static int mariadb;

static unsigned long long last(void) {
    if (mysql_query(db, "SELECT LAST_INSERT_ID()")) return 0;
    MYSQL_RES *res = mysql_store_result(db);
    MYSQL_ROW row = mysql_fetch_row(res);
    unsigned long long id = strtoull(row[0], NULL, 10);
    mysql_free_result(res);
    return id;
}

static void rows(const char *g) {
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT id, n, s, u FROM orders WHERE g='%s' ORDER BY id", g);
    if (mysql_query(db, sql)) { printf("%s error=%u\n", g, mysql_errno(db)); return; }
    MYSQL_RES *res = mysql_store_result(db);
    for (MYSQL_ROW row; (row = mysql_fetch_row(res));)
        printf("%s row=%s/%s/%s/%s\n", g, row[0], row[1] ? row[1] : "NULL", row[2] ? row[2] : "NULL", row[3] ? row[3] : "NULL");
    mysql_free_result(res);
}

static MYSQL_STMT *prepare(const char *g, const char *sql) {
    MYSQL_STMT *st = mysql_stmt_init(db);
    if (mysql_stmt_prepare(st, sql, strlen(sql))) {
        printf("%s error=%u\n", g, mysql_stmt_errno(st));
        mysql_stmt_close(st);
        return NULL;
    }
    return st;
}

static int execute(const char *g, MYSQL_STMT *st) {
    if (mysql_stmt_execute(st)) {
        printf("%s error=%u\n", g, mysql_stmt_errno(st));
        return 1;
    }
    printf("%s key=%llu connection=%llu affected=%llu warnings=%u\n", g, (unsigned long long)mysql_stmt_insert_id(st),
           (unsigned long long)mysql_insert_id(db), (unsigned long long)mysql_stmt_affected_rows(st), mysql_warning_count(db));
    return 0;
}

static MYSQL_BIND text(const char *s, unsigned long *length) {
    MYSQL_BIND b = {0};
    b.buffer_type = s ? MYSQL_TYPE_STRING : MYSQL_TYPE_NULL;
    b.buffer = (void *)s;
    *length = s ? strlen(s) : 0;
    b.buffer_length = *length;
    b.length = length;
    return b;
}

static MYSQL_BIND integer(enum enum_field_types type, void *value, int is_unsigned) {
    MYSQL_BIND b = {0};
    b.buffer_type = type;
    b.buffer = value;
    b.is_unsigned = is_unsigned;
    return b;
}

static void repeated(const char *g) {
    MYSQL_STMT *st = prepare(g, "INSERT INTO orders (g, n, s) VALUES (?, ?, ?)");
    if (!st) return;
    printf("%s parameters=%lu\n", g, mysql_stmt_param_count(st));
    unsigned long lg, ls;
    int n = 1;
    signed char tiny = -7;
    double d = 5.0;
    long long big = 6;
    MYSQL_BIND nothing = {.buffer_type = MYSQL_TYPE_NULL};
    MYSQL_BIND b[6][3] = {
        {text(g, &lg), integer(MYSQL_TYPE_LONG, &n, 0), text("a", &ls)},
        {text(g, &lg), nothing, text("b", &ls)},
        {text(g, &lg), integer(MYSQL_TYPE_TINY, &tiny, 0), nothing},
        {text(g, &lg), nothing, nothing},
        {text(g, &lg), integer(MYSQL_TYPE_DOUBLE, &d, 0), integer(MYSQL_TYPE_LONGLONG, &big, 0)},
        {text(g, &lg), text("8", &ls), text("8", &ls)},
    };
    for (int i = 0; i < 6; i++) {
        lg = strlen(g);
        ls = 1;
        mysql_stmt_bind_param(st, b[i]);
        if (execute(g, st)) break;
    }
    /* The same values again: no types are sent, only values. */
    execute(g, st);
    execute(g, st);
    /* A value in pieces. */
    mysql_stmt_send_long_data(st, 2, "long ", 5);
    mysql_stmt_send_long_data(st, 2, "data", 4);
    execute(g, st);
    mysql_stmt_reset(st);
    execute(g, st);
    mysql_stmt_close(st);
    rows(g);
}

static void bound(const char *g) {
    MYSQL_STMT *st = prepare(g, "INSERT INTO orders (id, g) VALUES (?, ?)");
    if (!st) return;
    unsigned long lg, lid;
    long long null_id = 0, big = 41;
    int zero = 0;
    unsigned short small = 43;
    my_bool is_null = 1;
    MYSQL_BIND nothing = {.buffer_type = MYSQL_TYPE_NULL};
    MYSQL_BIND marked = integer(MYSQL_TYPE_LONGLONG, &null_id, 0);
    marked.is_null = &is_null;
    MYSQL_BIND ids[] = {nothing, marked, integer(MYSQL_TYPE_LONG, &zero, 0), integer(MYSQL_TYPE_LONGLONG, &big, 1),
                        text("0", &lid), integer(MYSQL_TYPE_SHORT, &small, 1), text("44", &lid), nothing};
    const unsigned long lengths[] = {0, 0, 0, 0, 1, 0, 2, 0};
    for (int i = 0; i < 8; i++) {
        MYSQL_BIND b[2] = {ids[i], text(g, &lg)};
        lid = lengths[i];
        mysql_stmt_bind_param(st, b);
        if (execute(g, st)) break;
    }
    printf("%s last=%llu\n", g, last());
    mysql_stmt_close(st);
    rows(g);
}

static void batch(const char *g) {
    MYSQL_STMT *st = prepare(g, "INSERT INTO orders (g, n) VALUES (?, 1), (?, NULL), (?, 3)");
    if (!st) return;
    unsigned long l1, l2, l3;
    MYSQL_BIND b[3] = {text(g, &l1), text(g, &l2), text(g, &l3)};
    mysql_stmt_bind_param(st, b);
    for (int i = 0; i < 2; i++) {
        if (execute(g, st)) break;
        unsigned long long id = mysql_stmt_insert_id(st);
        printf("%s keys=%llu,%llu,%llu info=%s\n", g, id, id + 1, id + 2, mysql_info(db));
    }
    mysql_stmt_close(st);
    rows(g);
}

static void two(const char *g) { /* statements that are open at the same time, and one that is none of ours */
    MYSQL_STMT *order = prepare(g, "INSERT INTO orders (g, n) VALUES (?, ?)");
    MYSQL_STMT *item = prepare(g, "INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)");
    MYSQL_STMT *plain = prepare(g, "INSERT INTO plain (s) VALUES (?)");
    if (order && item && plain) {
        unsigned long lg = strlen(g);
        for (int n = 0; n < 3; n++) {
            MYSQL_BIND b[2] = {text(g, &lg), integer(MYSQL_TYPE_LONG, &n, 0)};
            mysql_stmt_bind_param(order, b);
            execute(g, order);
            mysql_stmt_bind_param(item, b);
            execute(g, item);
            mysql_stmt_bind_param(plain, b);
            execute(g, plain);
        }
    }
    if (order) mysql_stmt_close(order);
    if (item) mysql_stmt_close(item);
    if (plain) mysql_stmt_close(plain);
    rows(g);
}

static void upsert(const char *g) {
    MYSQL_STMT *st = prepare(g, "INSERT INTO orders (g, n, u) VALUES (?, ?, 'up') ON DUPLICATE KEY UPDATE n=VALUES(n)");
    if (!st) return;
    unsigned long lg;
    for (int i = 0; i < 3; i++) {
        int n = i < 2 ? i : 1;
        MYSQL_BIND b[2] = {text(g, &lg), integer(MYSQL_TYPE_LONG, &n, 0)};
        mysql_stmt_bind_param(st, b);
        if (execute(g, st)) break;
    }
    printf("%s last=%llu\n", g, last());
    mysql_stmt_close(st);
    rows(g);
}

static void failed(const char *g) {
    MYSQL_STMT *st = prepare(g, "INSERT INTO orders (g, u) VALUES (?, 'fail')");
    if (!st) return;
    unsigned long lg;
    MYSQL_BIND b[1] = {text(g, &lg)};
    mysql_stmt_bind_param(st, b);
    execute(g, st);
    if (mysql_stmt_execute(st))
        printf("%s failed=%u state=%s key=%llu\n", g, mysql_stmt_errno(st), mysql_stmt_sqlstate(st), (unsigned long long)mysql_insert_id(db));
    mysql_stmt_close(st);
    if (mysql_query(db, "INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), 'failed')")) printf("%s error=%u\n", g, mysql_errno(db));
    printf("%s child=%llu\n", g, (unsigned long long)mysql_insert_id(db));
}

static void returning(const char *g) {
    MYSQL_STMT *st = prepare(g, "INSERT INTO orders (g, n) VALUES (?, 1), (?, 2) RETURNING id, n");
    if (!st) return;
    unsigned long l1, l2;
    long long id = 0, n = 0;
    MYSQL_BIND b[2] = {text(g, &l1), text(g, &l2)};
    MYSQL_BIND out[2] = {integer(MYSQL_TYPE_LONGLONG, &id, 0), integer(MYSQL_TYPE_LONGLONG, &n, 0)};
    mysql_stmt_bind_param(st, b);
    mysql_stmt_bind_result(st, out);
    for (int i = 0; i < 2; i++) {
        if (mysql_stmt_execute(st)) { printf("%s error=%u\n", g, mysql_stmt_errno(st)); break; }
        while (!mysql_stmt_fetch(st)) printf("%s row=%lld/%lld\n", g, id, n);
        mysql_stmt_free_result(st);
    }
    mysql_stmt_close(st);
}

static void direct(const char *g) { /* prepared and executed in one go: on MariaDB the statement is -1, the last one prepared */
    const char *sql = "INSERT INTO orders (g, n) VALUES (?, ?), ('direct', 5)";
    unsigned long lg;
    unsigned int parameters = 2;
    MYSQL_STMT *st;
    for (int n = 1; n <= 2; n++) {
        MYSQL_BIND b[2] = {text(g, &lg), integer(MYSQL_TYPE_LONG, &n, 0)};
        st = mysql_stmt_init(db);
        mysql_stmt_attr_set(st, STMT_ATTR_PREBIND_PARAMS, &parameters);
        mysql_stmt_bind_param(st, b);
        if (mariadb_stmt_execute_direct(st, sql, strlen(sql)))
            printf("%s error=%u\n", g, mysql_stmt_errno(st));
        else
            printf("%s key=%llu affected=%llu parameters=%lu\n", g, (unsigned long long)mysql_stmt_insert_id(st),
                   (unsigned long long)mysql_stmt_affected_rows(st), mysql_stmt_param_count(st));
        mysql_stmt_close(st);
    }
    st = mysql_stmt_init(db); /* an error, and a statement behind it */
    const char *wrong = "INSERT INTO orders (g, nosuch) VALUES ('direct', 5)";
    if (mariadb_stmt_execute_direct(st, wrong, strlen(wrong))) printf("%s failed=%u\n", g, mysql_stmt_errno(st));
    mysql_stmt_close(st);
    st = mysql_stmt_init(db);
    const char *item = "INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), 'direct')";
    if (mariadb_stmt_execute_direct(st, item, strlen(item))) printf("%s error=%u\n", g, mysql_stmt_errno(st));
    printf("%s child=%llu last=%llu\n", g, (unsigned long long)mysql_stmt_insert_id(st), last());
    mysql_stmt_close(st);
    rows(g);
}

static void cursor(const char *g) { /* a cursor asked for where there are no rows; with RETURNING a server itself loses step */
    const unsigned long type = CURSOR_TYPE_READ_ONLY;
    unsigned long l1, l2;
    MYSQL_STMT *st = prepare(g, "INSERT INTO orders (g, n) VALUES (?, 1), (?, 2)");
    if (!st) return;
    MYSQL_BIND b[2] = {text(g, &l1), text(g, &l2)};
    mysql_stmt_attr_set(st, STMT_ATTR_CURSOR_TYPE, &type);
    mysql_stmt_bind_param(st, b);
    execute(g, st);
    mysql_stmt_close(st);
    rows(g);
}

static void reset(const char *g) { /* a connection that a pool hands on: nothing is left of what was there before */
    unsigned long lg;
    for (int change = 0; change < 2; change++) {
        MYSQL_STMT *st = prepare(g, "INSERT INTO orders (g) VALUES (?)");
        if (!st) return;
        MYSQL_BIND b[1] = {text(g, &lg)};
        mysql_stmt_bind_param(st, b);
        execute(g, st);
        int failed = change ? mysql_change_user(db, getenv("CLIENT_USER"), getenv("CLIENT_PASSWORD"), getenv("CLIENT_DATABASE"))
                            : mysql_reset_connection(db);
        if (failed) printf("%s error=%u\n", g, mysql_errno(db));
        printf("%s last=%llu\n", g, last());
        if (mysql_stmt_execute(st)) printf("%s failed=%u\n", g, mysql_stmt_errno(st));
        mysql_stmt_close(st);
        st = prepare(g, "INSERT INTO orders (g) VALUES (?)");
        if (!st) return;
        mysql_stmt_bind_param(st, b);
        execute(g, st);
        mysql_stmt_close(st);
    }
    rows(g);
}

static void reprepared(const char *g) { /* the table changes under a statement */
    unsigned long lg;
    MYSQL_STMT *st = prepare(g, "INSERT INTO orders (g) VALUES (?)");
    if (!st) return;
    static const char *changes[] = {"ALTER TABLE orders ADD COLUMN extra INT NULL FIRST", "ALTER TABLE orders DROP COLUMN extra", "ALTER TABLE orders COMMENT 'changed'"};
    for (int i = 0; i < 3; i++) {
        MYSQL_BIND b[1] = {text(g, &lg)};
        mysql_stmt_bind_param(st, b);
        execute(g, st);
        if (mysql_query(db, changes[i])) printf("%s error=%u\n", g, mysql_errno(db));
        execute(g, st);
    }
    mysql_stmt_close(st);
    rows(g);
}

static void no_list(const char *g) { /* no column list: the id is a parameter like the others */
    MYSQL_STMT *st = prepare(g, "INSERT INTO items VALUES (?, ?, ?)");
    if (!st) return;
    unsigned long lg;
    long long id = 92, order = 7;
    MYSQL_BIND nothing = {.buffer_type = MYSQL_TYPE_NULL};
    MYSQL_BIND ids[] = {nothing, integer(MYSQL_TYPE_LONGLONG, &id, 0), nothing};
    for (int i = 0; i < 3; i++) {
        MYSQL_BIND b[3] = {ids[i], integer(MYSQL_TYPE_LONGLONG, &order, 0), text(g, &lg)};
        mysql_stmt_bind_param(st, b);
        execute(g, st);
    }
    mysql_stmt_close(st);
}

static void bulk_insert(const char *g, const char *sql) { /* rows of one statement in arrays: a bulk command on MariaDB */
    MYSQL_STMT *st = prepare(g, sql);
    if (!st) return;
    unsigned int size = 5;
    const char *gs[] = {g, g, g, g, g};
    unsigned long lengths[] = {strlen(g), strlen(g), strlen(g), strlen(g), strlen(g)};
    int n[] = {1, 2, 3, 4, 5};
    char n_is[] = {STMT_INDICATOR_NONE, STMT_INDICATOR_NULL, STMT_INDICATOR_NONE, STMT_INDICATOR_DEFAULT, STMT_INDICATOR_NONE};
    MYSQL_BIND b[2] = {{0}};
    b[0].buffer_type = MYSQL_TYPE_STRING;
    b[0].buffer = gs;
    b[0].length = lengths;
    b[1].buffer_type = MYSQL_TYPE_LONG;
    b[1].buffer = n;
    b[1].u.indicator = n_is;
    mysql_stmt_attr_set(st, STMT_ATTR_ARRAY_SIZE, &size);
    mysql_stmt_bind_param(st, b);
    execute(g, st);
    printf("%s last=%llu\n", g, last());
    rows(g);
    /* Again, with less rows. A native counter has a gap in front of them, so they are a group of their own. */
    char again[40];
    snprintf(again, sizeof again, "%s_again", g);
    size = 3;
    for (int i = 0; i < 3; i++) {
        gs[i] = again;
        lengths[i] = strlen(again);
        n_is[i] = STMT_INDICATOR_NONE;
    }
    mysql_stmt_attr_set(st, STMT_ATTR_ARRAY_SIZE, &size);
    mysql_stmt_bind_param(st, b);
    execute(again, st);
    mysql_stmt_close(st);
    rows(again);
}

static void bulk(const char *g) { bulk_insert(g, "INSERT INTO orders (g, n) VALUES (?, ?)"); }

static void bulk_text(const char *g) { bulk_insert(g, "INSERT INTO orders (g, n, s) VALUES (?, ?, 'x')"); }

static void bulk_ids(const char *g) {
    MYSQL_STMT *st = prepare(g, "INSERT INTO orders (id, g) VALUES (?, ?)");
    if (!st) return;
    unsigned int size = 4;
    const char *gs[] = {g, g, g, g};
    unsigned long lengths[] = {strlen(g), strlen(g), strlen(g), strlen(g)};
    long long id[] = {0, 0, 91, 0};
    char id_is[] = {STMT_INDICATOR_NULL, STMT_INDICATOR_NONE, STMT_INDICATOR_NONE, STMT_INDICATOR_DEFAULT};
    MYSQL_BIND b[2] = {{0}};
    b[0].buffer_type = MYSQL_TYPE_LONGLONG;
    b[0].buffer = id;
    b[0].u.indicator = id_is;
    b[1].buffer_type = MYSQL_TYPE_STRING;
    b[1].buffer = gs;
    b[1].length = lengths;
    mysql_stmt_attr_set(st, STMT_ATTR_ARRAY_SIZE, &size);
    mysql_stmt_bind_param(st, b);
    execute(g, st);
    mysql_stmt_close(st);
    rows(g);
}

static void rollback(const char *g) {
    mysql_autocommit(db, 0);
    MYSQL_STMT *st = prepare(g, "INSERT INTO orders (g) VALUES (?)");
    if (st) {
        unsigned long lg;
        MYSQL_BIND b[1] = {text(g, &lg)};
        mysql_stmt_bind_param(st, b);
        execute(g, st);
        mysql_stmt_close(st);
    }
    mysql_rollback(db);
    mysql_autocommit(db, 1);
    rows(g);
}

static void query(const char *g) { /* text, and several statements in one */
    char sql[500];
    snprintf(sql, sizeof sql, "INSERT INTO orders (g, n) VALUES ('%s', 1), ('%s', 2); SELECT LAST_INSERT_ID(); "
             "INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), '%s')", g, g, g);
    if (mysql_real_query(db, sql, strlen(sql))) { printf("%s error=%u\n", g, mysql_errno(db)); return; }
    int more;
    do {
        MYSQL_RES *res = mysql_store_result(db);
        if (res) {
            printf("%s last=%s\n", g, mysql_fetch_row(res)[0]);
            mysql_free_result(res);
        } else {
            printf("%s key=%llu affected=%llu\n", g, (unsigned long long)mysql_insert_id(db), (unsigned long long)mysql_affected_rows(db));
        }
        more = mysql_next_result(db);
    } while (!more);
    if (more > 0) printf("%s error=%u\n", g, mysql_errno(db));
    rows(g);
}

int main(int argc, char **argv) {
    db = mysql_init(NULL);
    unsigned long flags = CLIENT_MULTI_STATEMENTS | (argc > 2 ? CLIENT_FOUND_ROWS : 0);
    if (!mysql_real_connect(db, getenv("CLIENT_HOST"), getenv("CLIENT_USER"), getenv("CLIENT_PASSWORD"), getenv("CLIENT_DATABASE"),
                            atoi(getenv("CLIENT_PORT")), NULL, flags)) {
        fprintf(stderr, "%s\n", mysql_error(db));
        return 1;
    }
    mariadb = strstr(mysql_get_server_info(db), "MariaDB") != NULL;
    static const struct { const char *mode, *name; void (*run)(const char *); int mariadb; } all[] = {
        {"text", "query", query, 0},
        {"prepared", "repeated", repeated, 0}, {"prepared", "bound", bound, 0}, {"prepared", "batch", batch, 0},
        {"prepared", "two", two, 0}, {"prepared", "upsert", upsert, 0}, {"prepared", "failed", failed, 0},
        {"prepared", "rollback", rollback, 0}, {"prepared", "returning", returning, 1},
        {"prepared", "direct", direct, 0}, {"prepared", "cursor", cursor, 0}, {"prepared", "reset", reset, 0},
        {"prepared", "reprepared", reprepared, 0}, {"prepared", "no_list", no_list, 0},
        {"bulk", "bulk", bulk, 1}, {"bulk", "bulk_text", bulk_text, 1}, {"bulk", "bulk_ids", bulk_ids, 1},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if ((mariadb || !all[i].mariadb) && strcmp(all[i].mode, argv[1]) == 0) all[i].run(all[i].name);
    mysql_close(db);
    return 0;
}
