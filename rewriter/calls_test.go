package rewriter

import "testing"

func TestCallsUnknown(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT 1": false, "": false, "(": false, "SELECT COUNT(*), MAX (a) FROM t WHERE id IN (1, 2) AND (a = 3)": false, "SELECT SLEEP(0), ROW_COUNT()": false,
		"INSERT INTO orders (a) VALUES (1), (2)": false, "INSERT INTO `orders` (a) VALUES (1)": false, "INSERT INTO shop.orders(a) VALUES (UUID())": false,
		"SELECT f(1)": true, "SELECT f (1)": true, "SELECT `f`(1)": true, `SELECT "f" (1)`: true, "SELECT shop.f(1)": true, "SELECT shop.concat(1)": true, "SELECT f/* */(1)": true,
		"INSERT INTO orders (a) VALUES (f(1))": true, "INSERT INTO other (a) VALUES (1)": true, "DO \xc3\xa9(1)": true, "SET @a = f()": true, "SELECT concat(1, g\n\t(2))": true, "/(": false, "`(": true, "*/(": true,
	} {
		if got := CallsUnknown([]byte(text), []byte("orders")); got != want {
			t.Errorf("%q: %v; want %v", text, got, want)
		}
	}
}
