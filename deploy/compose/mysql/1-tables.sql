-- Run once by the mysql image, as root: tables whose ids idproxy fills. The image has made the database shop and the account app.

CREATE TABLE shop.orders (id BIGINT UNSIGNED PRIMARY KEY, customer VARCHAR(40) NOT NULL, amount DECIMAL(8,2) NOT NULL DEFAULT 0);
CREATE TABLE shop.events (id BIGINT PRIMARY KEY, what VARCHAR(40) NOT NULL);

-- idproxy keeps the ranges of its ids here.
CREATE DATABASE idproxy;
