// Package top shows a running idproxy in a terminal, as htop shows a machine.
//
// A [Model] takes what the admin listener answers, and says what is to be seen: lines above, and a
// table for each tab. It knows no terminal and no network. [Run] asks again and again, and draws the
// model with tview.
package top
