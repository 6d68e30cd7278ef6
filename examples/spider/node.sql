CREATE DATABASE shop;
CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, customer VARCHAR(40) NOT NULL);
CREATE TABLE shop.orders_by_key (id BIGINT PRIMARY KEY, customer VARCHAR(40) NOT NULL);
-- The head logs in as this user.
CREATE USER spider IDENTIFIED BY 'spider';
GRANT ALL PRIVILEGES ON shop.* TO spider;
CREATE USER app IDENTIFIED BY 'app';
GRANT SELECT ON shop.* TO app;
