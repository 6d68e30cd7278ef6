package main

import "testing"

func TestSideBySide(t *testing.T) {
	got := sideBySide([][]string{{"a", "1", "22"}, {"bbb", "3"}, {"c", "4", "5", "6"}})
	const want = `
  a    bbb   c
  1    3     4
  22         5
             6

`
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
