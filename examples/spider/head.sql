CREATE DATABASE shop;
CREATE SERVER node0 FOREIGN DATA WRAPPER mysql OPTIONS (HOST '127.0.0.10', PORT 3306, DATABASE 'shop', USER 'spider', PASSWORD 'spider');
CREATE SERVER node1 FOREIGN DATA WRAPPER mysql OPTIONS (HOST '127.0.0.11', PORT 3306, DATABASE 'shop', USER 'spider', PASSWORD 'spider');

-- id % 2 says on which node a row is.
CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, customer VARCHAR(40) NOT NULL)
  ENGINE=SPIDER PARTITION BY HASH(id) (
    PARTITION p0 COMMENT = 'srv "node0", table "orders"',
    PARTITION p1 COMMENT = 'srv "node1", table "orders"');

-- The wrong way, to be seen: the hash of KEY depends on single bits of an id, high ones above all.
CREATE TABLE shop.orders_by_key (id BIGINT PRIMARY KEY, customer VARCHAR(40) NOT NULL)
  ENGINE=SPIDER PARTITION BY KEY(id) (
    PARTITION p0 COMMENT = 'srv "node0", table "orders_by_key"',
    PARTITION p1 COMMENT = 'srv "node1", table "orders_by_key"');

-- A table of the head itself, to compare with.
CREATE TABLE shop.local_orders (id BIGINT PRIMARY KEY, customer VARCHAR(40) NOT NULL);

CREATE USER app IDENTIFIED BY 'app';
GRANT ALL PRIVILEGES ON shop.* TO app;
