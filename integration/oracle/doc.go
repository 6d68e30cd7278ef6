// Package oracle compares INSERTs through idproxy with AUTO_INCREMENT: every form, in every mode,
// with every way to give the id and every outcome of its rows, as text, prepared, in bulk and in
// SQL. A script runs on a native column and, through the proxy, on a plain one and on one that kept
// its AUTO_INCREMENT; replies and tables are the same, ids by the rows they name. What is
// documented to differ is a deviation, which must show.
package oracle
