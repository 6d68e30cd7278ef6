/* libmariadb: a connection that is lost, and made again by mysql_ping. */
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>

static MYSQL *db;

static int connect_to(const char *port) {
    my_bool yes = 1;
    db = mysql_init(NULL);
    mysql_options(db, MYSQL_OPT_RECONNECT, &yes);
    return mysql_real_connect(db, getenv("CLIENT_HOST"), getenv("CLIENT_USER"), getenv("CLIENT_PASSWORD"), getenv("CLIENT_DATABASE"),
                              atoi(getenv(port)), NULL, 0) != NULL;
}

static void show(const char *what) { printf("%s %u %s %s\n", what, mysql_errno(db), mysql_sqlstate(db), mysql_error(db)); }

int main(void) {
    if (!connect_to("CLIENT_PORT")) show("login");
    if (mysql_query(db, "INSERT INTO orders (g) VALUES ('lose me')")) show("lost");
    for (int i = 0; i < 2 && mysql_ping(db); i++) {}
    if (mysql_query(db, "INSERT INTO orders (g) VALUES ('again')")) show("again");
    printf("again key=%llu\n", (unsigned long long)mysql_insert_id(db));
    mysql_close(db);
    if (!connect_to("CLIENT_PORT_DOWN")) show("connect");
    mysql_close(db);
    return 0;
}
