CREATE DATABASE shop;
CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, customer VARCHAR(40) NOT NULL);
CREATE USER app IDENTIFIED BY 'app';
GRANT ALL PRIVILEGES ON shop.* TO app;
-- idproxy's own account asks for the greatest id of each table before the first id is given.
CREATE USER idproxy IDENTIFIED BY 'secret';
GRANT SELECT ON shop.* TO idproxy;
