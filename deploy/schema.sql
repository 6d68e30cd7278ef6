-- Run once by the mysql image, as root: tables whose ids idproxy fills, its own database, and the accounts.

CREATE DATABASE shop;
CREATE TABLE shop.orders (id BIGINT UNSIGNED PRIMARY KEY, customer VARCHAR(40) NOT NULL, amount DECIMAL(8,2) NOT NULL DEFAULT 0);
CREATE TABLE shop.events (id BIGINT PRIMARY KEY, what VARCHAR(40) NOT NULL);

CREATE USER app IDENTIFIED BY 'app';
GRANT ALL PRIVILEGES ON shop.* TO app;

-- idproxy keeps the ranges of its ids here, and reads MAX(id) of tables before it numbers them.
CREATE DATABASE idproxy;
CREATE USER idproxy IDENTIFIED BY 'idproxy';
GRANT ALL PRIVILEGES ON idproxy.* TO idproxy;
GRANT SELECT ON shop.* TO idproxy;
