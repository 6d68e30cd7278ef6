CREATE DATABASE shop;
CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, customer VARCHAR(40) NOT NULL);
CREATE TABLE shop.carts (id BIGINT PRIMARY KEY, customer VARCHAR(40) NOT NULL);
CREATE USER app IDENTIFIED BY 'app';
GRANT ALL PRIVILEGES ON shop.* TO app;
-- What idproxy keeps, and its account, which also asks for the greatest id of each table.
CREATE DATABASE idproxy;
CREATE USER idproxy IDENTIFIED BY 'secret';
GRANT SELECT ON shop.* TO idproxy;
GRANT CREATE, SELECT, INSERT, UPDATE, DELETE ON idproxy.* TO idproxy;
